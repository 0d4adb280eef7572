// Plots of a recorded flow: its packets, its causal chain and its gauges on one axis of time.

/** Lanes of gauges by the end of their names, and the unit in which Python stores them. */
const UNITS = [
  { suffix: "_bytes", name: "window and data in flight", format: bytes, scale: 1 },
  { suffix: "_bps", name: "rate", format: rate, scale: 1 },
  { suffix: "_s", name: "time", format: seconds, scale: 1e-9 },
  { suffix: "", name: "other gauges", format: (/** @type {number} */ value) => number(value), scale: 1e-6 },
];
const GAUGE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/**
 * Adds the plots of a recording; returns them.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {any} recording
 * @param {number} span of the axis of time, in seconds
 * @param {string} prefix of titles
 * @param {Map<string, Entry>} entries of the legend, by name
 */
function recordingFrames(parent, head, recording, span, prefix, entries) {
  const { entry, packets, pieces, gauges } = recording;
  const ideal = entry.ideal_fct_s && entry.outcome !== "long_lived" ? entry.ideal_fct_s : null;
  const rules = ideal ? [ruleLayer({ x: ideal, colour: "--ink", dash: [4, 4] })] : [];
  if (ideal) entries.set("ideal FCT", { name: "ideal FCT", colour: "--ink", swatch: "dashed" });
  const lanes = gauges ? gaugeLanes(gauges) : [];
  const common = { together: `flow${entry.flow}`, left: LEFT, direction: /** @type {"x"} */ ("x") };
  const x = {
    name: "time since the start of the flow",
    range: /** @type {[number, number]} */ ([0, span * 1.01 || 1]),
    format: seconds,
  };
  const made = [];
  const isLast = (/** @type {string} */ name) =>
    name === (lanes.length ? lanes[lanes.length - 1].name : pieces ? "pieces" : "packets");
  if (packets) {
    const plot = packetPlot(packets, recording.payload, entries);
    made.push(
      new Frame(parent, {
        ...common,
        x,
        label: `${prefix}bytes of flow ${entry.flow} over time`,
        y: {
          name: `${prefix}bytes sent, arrived and acknowledged`,
          range: [0, plot.most * 1.04],
          format: bytes,
        },
        height: 230,
        layers: () => [...plot.layers, ...rules],
        marks: plot.marks,
        table: plot.table,
        hasAxisBelow: isLast("packets"),
      }),
    );
  }
  if (pieces) {
    const plot = piecePlot(head, pieces, entries);
    made.push(
      new Frame(parent, {
        ...common,
        x,
        label: `${prefix}causal chain of flow ${entry.flow} over time`,
        y: {
          name: `${prefix}causal chain: what the flow waited for, one interval after the other`,
          range: [-pieces.rows - 0.5, 0.5],
          ticks: [],
        },
        height: clamp(60 + 7 * pieces.rows, 90, 220),
        layers: () => [...plot.layers, ...rules],
        marks: plot.marks,
        table: plot.table,
        hasAxisBelow: isLast("pieces"),
      }),
    );
  }
  for (const lane of lanes) {
    if (lane.lines.length > 1)
      for (const { name, colour } of lane.lines) entries.set(name, { name, colour, swatch: "line" });
    made.push(
      new Frame(parent, {
        ...common,
        x,
        label: `${prefix}${lane.title} of flow ${entry.flow} over time`,
        y: { name: `${prefix}${lane.title}`, range: [0, lane.most * 1.1 || 1], format: lane.format },
        height: isLast(lane.name) ? 124 : 100,
        layers: () => [...lane.lines.map((line) => lineLayer({ ...line, step: true })), ...rules],
        marks: lane.marks,
        hasAxisBelow: isLast(lane.name),
      }),
    );
  }
  return made;
}

/** @param {any} values @param {number[]} rows */
const pick = (values, rows) => rows.map((row) => values[row]);

/**
 * Returns the layers and the marks of a time–sequence diagram.
 * @param {Table} table
 * @param {number} payload bytes of a segment
 * @param {Map<string, Entry>} entries
 */
function packetPlot(table, payload, entries) {
  const {
    kind,
    number: order,
    copy,
    because,
    marked,
    sent,
    arrived,
    lost,
    lost_at: where,
    lost_why: why,
  } = table.columns;
  const all = [...kind.keys()];
  const data = all.filter((row) => kind[row] === "data");
  const acks = all.filter((row) => kind[row] === "ack" && Number.isFinite(arrived[row]));
  const segment = (/** @type {number} */ row) => order[row] * payload;
  const sticks = (/** @type {number[]} */ rows, /** @type {any} */ times, /** @type {any} */ style) =>
    sticksLayer({
      ...style,
      x: rows.map((row) => times[row] * NS),
      low: rows.map(segment),
      high: rows.map((row) => segment(row) + payload),
    });
  const groups = [
    {
      name: "arrived",
      colour: "#56B4E9",
      rows: data.filter((row) => Number.isFinite(arrived[row]) && !marked[row]),
      times: arrived,
    },
    { name: "sent", colour: "--ink", rows: data.filter((row) => copy[row] === 1), times: sent },
    {
      name: "arrived with ECN mark",
      colour: "#E69F00",
      rows: data.filter((row) => Number.isFinite(arrived[row]) && marked[row]),
      times: arrived,
      width: 2.2,
    },
    {
      name: "sent again",
      colour: "#CC79A7",
      rows: data.filter((row) => copy[row] > 1),
      times: sent,
      width: 4,
    },
  ].filter((group) => group.rows.length);
  const losses = data.filter((row) => Number.isFinite(lost[row]));
  acks.sort((one, two) => arrived[one] - arrived[two]);
  for (const { name, colour } of groups) entries.set(name, { name, colour });
  if (acks.length) entries.set("acknowledged", { name: "acknowledged", colour: "#009E73", swatch: "line" });
  if (losses.length) entries.set("lost", { name: "✕ lost", colour: "#D55E00" });
  const layers = [
    lineLayer({
      x: acks.map((row) => arrived[row] * NS),
      y: acks.map(segment),
      colour: "#009E73",
      step: true,
      width: 1.8,
    }),
    ...groups.map(({ rows, times, ...style }) => sticks(rows, times, style)),
    pointsLayer({
      x: losses.map((row) => lost[row] * NS),
      y: losses.map((row) => segment(row) + payload / 2),
      colour: "#D55E00",
      shape: "X",
      size: 5,
    }),
  ];
  const at = (/** @type {number} */ time) => (Number.isFinite(time) ? seconds(time * NS) : "");
  const marks = {
    x: data.map((row) => sent[row] * NS),
    y: data.map((row) => segment(row) + payload / 2),
    text: (/** @type {number} */ index) => {
      const row = data[index];
      const again = copy[row] > 1 ? `, copy ${copy[row]} (${because[row]})` : "";
      const fate = Number.isFinite(arrived[row])
        ? `arrived ${at(arrived[row])}${marked[row] ? " with ECN mark" : ""}`
        : Number.isFinite(lost[row])
          ? `lost ${at(lost[row])} at ${where[row]} (${why[row]})`
          : "under way at the end";
      return `segment ${order[row]}${again}\nsent ${at(sent[row])}, ${fate}`;
    },
  };
  const cells = () => ({
    head: ["packet", "number", "copy", "sent", "arrived", "lost", "at"],
    rows: all.map((row) => [
      kind[row],
      String(order[row]),
      String(copy[row]),
      at(sent[row]),
      at(arrived[row]),
      at(lost[row]),
      where[row] ?? "",
    ]),
  });
  return {
    layers,
    marks,
    table: cells,
    most: ends(data.map((row) => segment(row) + payload))[1] || payload,
  };
}

/**
 * Returns a layer with vertical lines from `low` to `high`, at least two pixels long.
 * @param {Stroke & {x: Numbers, low: Numbers, high: Numbers}} sticks
 * @returns {Layer}
 */
function sticksLayer({ x, low, high, ...stroke }) {
  return (pen) => {
    setStroke(pen, stroke);
    pen.context.beginPath();
    for (let index = 0; index < x.length; index += 1) {
      const across = pen.x(x[index]);
      const [foot, top] = [pen.y(low[index]), pen.y(high[index])];
      pen.context.moveTo(across, foot);
      pen.context.lineTo(across, Math.min(top, foot - 2 * pen.ratio));
    }
    pen.context.stroke();
  };
}

/**
 * Returns the layers and the marks of a causal chain.
 * @param {any} head
 * @param {Table} table
 * @param {Map<string, Entry>} entries
 */
function piecePlot(head, table, entries) {
  const { begins, lasts, reason, is_recovery: isRecovery } = table.columns;
  const rows = [...begins.keys()];
  const left = Float64Array.from(begins, (/** @type {number} */ time) => time * NS);
  const layers = [];
  const present = head.parts.filter((/** @type {any} */ part) => table.columns[part.name]);
  for (const part of present) {
    const widths = table.columns[part.name];
    const some = rows.filter((row) => widths[row] > 0);
    const begin = pick(left, some);
    for (const row of some) left[row] += widths[row] * NS;
    layers.push(
      boxesLayer({
        left: begin,
        right: pick(left, some),
        bottom: some.map((row) => -row - 0.45),
        top: some.map((row) => -row + 0.45),
        colour: part.colour,
      }),
    );
    entries.set(part.label, { name: part.label, colour: part.colour });
  }
  const losses = rows.filter((row) => isRecovery[row]);
  if (losses.length) entries.set("lost packet sent", { name: "✕ lost packet sent", colour: "--ink" });
  layers.push(
    pointsLayer({
      x: losses.map((row) => begins[row] * NS),
      y: losses.map((row) => -row),
      colour: "--ink",
      shape: "x",
      size: 4.5,
    }),
  );
  const partsOf = (/** @type {number} */ row) =>
    present
      .filter((/** @type {any} */ part) => table.columns[part.name][row] > 0)
      .sort(
        (/** @type {any} */ one, /** @type {any} */ two) =>
          table.columns[two.name][row] - table.columns[one.name][row],
      )
      .map((/** @type {any} */ part) => `${part.label} ${seconds(table.columns[part.name][row] * NS)}`);
  const marks = {
    x: rows.map((row) => begins[row] * NS),
    y: rows.map((row) => -row),
    text: (/** @type {number} */ row) =>
      `${reason[row]}: since ${seconds(begins[row] * NS)}, for ` +
      `${seconds(lasts[row] * NS)}\n${partsOf(row).join("\n")}`,
  };
  const cells = () => ({
    head: ["interval", "begin", "duration", "parts"],
    rows: rows.map((row) => [
      reason[row],
      seconds(begins[row] * NS),
      seconds(lasts[row] * NS),
      partsOf(row).join(", "),
    ]),
  });
  return { layers, marks, table: cells };
}

/**
 * Returns a lane for each unit of gauges.
 * @param {Table} table
 */
function gaugeLanes(table) {
  const { gauge, time, value } = table.columns;
  const names = [...new Set(gauge)].map(String);
  const lanes = [];
  for (const unit of UNITS) {
    const own = names.filter((name) => UNITS.find(({ suffix }) => name.endsWith(suffix)) === unit);
    if (!own.length) continue;
    const words = (/** @type {string} */ name) =>
      name
        .slice(0, name.length - unit.suffix.length)
        .replaceAll("_", " ")
        .replace("rtt", "RTT");
    const rows = own.flatMap((name) => [...gauge.keys()].filter((row) => gauge[row] === name));
    // A gauge has a row for each change; most of a law's own never change.
    if (!unit.suffix && rows.length === own.length) continue;
    const scaled = (/** @type {number} */ row) => value[row] * unit.scale;
    lanes.push({
      name: unit.name,
      title: own.map(words).join(", "),
      format: unit.format,
      most: ends(rows.map(scaled))[1],
      lines: own.map((name, place) => {
        const mine = rows.filter((row) => gauge[row] === name);
        return {
          name: words(name),
          x: mine.map((row) => time[row] * NS),
          y: mine.map(scaled),
          colour: GAUGE_COLOURS[place % GAUGE_COLOURS.length],
        };
      }),
      marks: {
        x: rows.map((row) => time[row] * NS),
        y: rows.map(scaled),
        group: pick(gauge, rows),
        text: (/** @type {number} */ index) =>
          `${words(gauge[rows[index]])} ${unit.format(scaled(rows[index]))}\n` +
          `${seconds(time[rows[index]] * NS)}`,
      },
    });
  }
  return lanes;
}
