// Plots of a recorded flow: its packets, its causal chain and its gauges on one axis of time.

/** Lanes of gauges by the end of their names, and the unit in which Python stores them. */
const UNITS = [
  { suffix: "_bytes", format: bytes, scale: 1 },
  { suffix: "_bps", format: rate, scale: 1 },
  { suffix: "_s", format: seconds, scale: 1e-9 },
  { suffix: "", format: (/** @type {number} */ value) => number(value), scale: 1e-6 },
];
/** Least sides of a box of a causal chain, of which there may be more than pixels. */
const LEAST_BOX = 3;
const MOST_CHAIN = 296;
const GAUGE_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];

/**
 * Adds the plots of a recording, each below the names of its colours; returns them.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {any} recording
 * @param {number} span of the axis of time, in seconds
 * @param {string} prefix of titles
 */
function recordingFrames(parent, head, recording, span, prefix) {
  const { entry, packets, pieces, gauges } = recording;
  const ideal = entry.ideal_fct_s && entry.outcome !== "long_lived" ? entry.ideal_fct_s : null;
  const rules = ideal ? [ruleLayer({ x: ideal, colour: "--ink", dash: [4, 4] })] : [];
  const plots = [
    ...(packets ? [packetPlot(packets, recording, prefix)] : []),
    ...(pieces ? [piecePlot(head, pieces, prefix)] : []),
    ...(gauges ? gaugeLanes(gauges, entry, prefix) : []),
  ];
  return plots.map(({ names, layers, height, ...plot }, place) => {
    const isLast = place === plots.length - 1;
    const rule = { name: "ideal FCT", colour: "--ink", swatch: /** @type {Swatch} */ ("dashed") };
    const own = [...names, ...(ideal && place === 0 ? [rule] : [])];
    if (own.length) parent.append(element("p", { class: "names" }, ...own.map(nameOf)));
    return new Frame(parent, {
      ...plot,
      label: `${plot.label} of flow ${entry.flow} over time`,
      together: `flow${entry.flow}`,
      left: LEFT,
      direction: "x",
      table: "table" in plot ? plot.table : "marks",
      x: {
        name: "time since the start of the flow",
        // Room for what was sent at the start.
        range: [-0.005 * span, span * 1.01 || 1],
        format: seconds,
      },
      height: height + (isLast ? 24 : 0),
      layers: () => [...layers, ...rules],
      hasAxisBelow: isLast,
    });
  });
}

/** @param {any} values @param {number[]} rows */
const pick = (values, rows) => rows.map((row) => values[row]);

/** Kinds of packets that are neither data nor answers to it. */
const CONTROL = ["syn", "syn_ack", "request", "probe", "probe_ack", "loss_probe", "fin"];

/**
 * Returns the time–sequence diagram: data, acknowledgements, control packets and losses of all kinds.
 * @param {Table} table
 * @param {{entry: any, payload: number}} recording
 * @param {string} prefix
 */
function packetPlot(table, { entry, payload }, prefix) {
  const { kind, number: order, copy, marked, sent, arrived, lost } = table.columns;
  const all = [...kind.keys()];
  const hasArrived = (/** @type {number} */ row) => Number.isFinite(arrived[row]);
  const isLost = (/** @type {number} */ row) => Number.isFinite(lost[row]);
  const isData = (/** @type {number} */ row) => kind[row] === "data";
  const data = all.filter(isData);
  const control = all.filter((row) => CONTROL.includes(kind[row]));
  const acks = all.filter((row) => kind[row] === "ack" && hasArrived(row));
  acks.sort((one, two) => arrived[one] - arrived[two]);
  const losses = all.filter(isLost);
  // The last segment of a flow is as short as the rest of its bytes.
  const whole = entry.outcome === "long_lived" ? Infinity : entry.size_bytes;
  const foot = (/** @type {number} */ row) =>
    Number.isFinite(order[row]) ? Math.min(order[row] * payload, whole) : 0;
  const top = (/** @type {number} */ row) => (isData(row) ? Math.min(foot(row) + payload, whole) : foot(row));
  const middle = (/** @type {number} */ row) => (foot(row) + top(row)) / 2;
  const groups = [
    {
      name: "arrived",
      colour: "#56B4E9",
      rows: data.filter((row) => hasArrived(row) && !marked[row]),
      times: arrived,
    },
    { name: "sent", colour: "--ink", rows: data.filter((row) => copy[row] === 1), times: sent },
    {
      name: "arrived with ECN mark",
      colour: "#E69F00",
      rows: data.filter((row) => hasArrived(row) && marked[row]),
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
  const points = (/** @type {number[]} */ rows, /** @type {any} */ times, /** @type {any} */ style) =>
    pointsLayer({ ...style, x: rows.map((row) => times[row] * NS), y: rows.map(middle) });
  const controlNames = [...new Set(pick(kind, control))].map(nameOfKind).join(", ");
  /** @type {Entry[]} */
  const names = [
    ...groups.map(({ name, colour }) => ({ name, colour })),
    ...(acks.length
      ? [{ name: "acknowledged", colour: "#009E73", swatch: /** @type {Swatch} */ ("line") }]
      : []),
    ...(control.length
      ? [
          {
            name: `${controlNames} sent`,
            colour: "--soft",
            swatch: /** @type {Swatch} */ ("hollow"),
          },
        ]
      : []),
    ...(losses.length ? [{ name: "✕ lost", colour: "#D55E00" }] : []),
  ];
  const layers = [
    lineLayer({
      x: acks.map((row) => arrived[row] * NS),
      y: acks.map(foot),
      colour: "#009E73",
      step: true,
      width: 1.8,
    }),
    ...groups.map(({ rows, times, ...style }) =>
      sticksLayer({
        ...style,
        x: rows.map((row) => times[row] * NS),
        low: rows.map(foot),
        high: rows.map(top),
      }),
    ),
    points(control, sent, { colour: "--soft", hollow: true, size: 3.5 }),
    points(losses, lost, { colour: "#D55E00", shape: "X", size: 5 }),
  ];
  const found = all.filter((row) => isData(row) || CONTROL.includes(kind[row]) || isLost(row));
  const most = ends(data.map(top))[1];
  const end = most > 0 ? most : payload;
  return {
    names,
    layers,
    height: 206,
    label: `${prefix}bytes`,
    y: {
      name: `${prefix}bytes sent, arrived and acknowledged`,
      // Room for packets that stand at 0.
      range: /** @type {[number, number]} */ ([-0.03 * end, end * 1.04]),
      format: bytes,
    },
    marks: {
      x: found.map((row) => sent[row] * NS),
      y: found.map(middle),
      text: (/** @type {number} */ index) => packetText(table, found[index]),
    },
    table: () => packetCells(table),
  };
}

/** @param {string} kind of a packet */
const nameOfKind = (kind) =>
  ({ syn: "SYN", syn_ack: "SYN-ACK", ack: "ACK", nack: "NACK", cnp: "CNP", fin: "FIN", data: "segment" })[
    kind
  ] ?? kind.replace("_ack", " ACK").replaceAll("_", " ");

/** @param {number} time in nanoseconds, or NaN */
const atTime = (time) => (Number.isFinite(time) ? seconds(time * NS) : "");

/**
 * Returns what became of a packet.
 * @param {Table} table
 * @param {number} row
 */
function packetText(table, row) {
  const { kind, number: order, copy, because, marked, sent, arrived, lost } = table.columns;
  const { lost_at: where, lost_why: why } = table.columns;
  const again = copy[row] > 1 ? `, copy ${copy[row]} (${because[row]})` : "";
  const fate = Number.isFinite(arrived[row])
    ? `arrived ${atTime(arrived[row])}${marked[row] ? " with ECN mark" : ""}`
    : Number.isFinite(lost[row])
      ? `lost ${atTime(lost[row])} at ${where[row]} (${why[row]})`
      : "under way at the end";
  const hasNumber = Number.isFinite(order[row]) && !["syn", "syn_ack", "request"].includes(kind[row]);
  const name = hasNumber ? `${nameOfKind(kind[row])} ${order[row]}` : nameOfKind(kind[row]);
  return `${name}${again}\nsent ${atTime(sent[row])}, ${fate}`;
}

/** @param {Table} table of packets @returns {Cells} */
function packetCells({ columns: { kind, number: order, copy, sent, arrived, lost, lost_at: where } }) {
  return {
    head: ["packet", "number", "copy", "sent", "arrived", "lost", "at"],
    rows: [...kind.keys()].map((row) => [
      kind[row],
      Number.isFinite(order[row]) ? String(order[row]) : "",
      String(copy[row]),
      atTime(sent[row]),
      atTime(arrived[row]),
      atTime(lost[row]),
      where[row] ?? "",
    ]),
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
 * Returns the plot of a causal chain.
 * @param {any} head
 * @param {Table} table
 * @param {string} prefix
 */
function piecePlot(head, table, prefix) {
  const { begins, lasts, reason, is_recovery: isRecovery } = table.columns;
  const rows = [...begins.keys()];
  const left = Float64Array.from(begins, (/** @type {number} */ time) => time * NS);
  const layers = [];
  /** @type {Entry[]} */
  const names = [];
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
        least: LEAST_BOX,
      }),
    );
    names.push({ name: part.label, colour: part.colour });
  }
  const losses = rows.filter((row) => isRecovery[row]);
  if (losses.length) names.push({ name: "✕ lost packet sent", colour: "--ink" });
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
  return {
    names,
    layers,
    height: clamp(36 + 7 * table.rows, 66, MOST_CHAIN),
    label: `${prefix}causal chain`,
    y: {
      name: `${prefix}causal chain: what the flow waited for, one interval after the other`,
      range: /** @type {[number, number]} */ ([-table.rows - 0.5, 0.5]),
      ticks: [],
    },
    marks,
    table: cells,
  };
}

/**
 * Returns a lane for each unit of gauges, whose values hold until the end of the flow or of the run.
 * @param {Table} table
 * @param {any} entry
 * @param {string} prefix
 */
function gaugeLanes(table, entry, prefix) {
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
    const title = `${prefix}${own.map(words).join(", ")}`;
    // The first ACK of a short flow may be its last.
    const isEmpty = rows.every((row) => time[row] * NS > entry.lasts_s);
    const lines = own.map((name, place) => {
      const mine = rows.filter((row) => gauge[row] === name);
      const held = heldUntil(entry.lasts_s, pick(time, mine).map(inSeconds), mine.map(scaled));
      return { ...held, name: words(name), colour: GAUGE_COLOURS[place % GAUGE_COLOURS.length] };
    });
    lanes.push({
      label: title,
      height: 100,
      y: {
        name: isEmpty ? `${title}: no sample before the end` : title,
        range: /** @type {[number, number]} */ ([0, ends(rows.map(scaled))[1] * 1.1 || 1]),
        format: unit.format,
      },
      names:
        lines.length > 1
          ? lines.map(({ name, colour }) => ({ name, colour, swatch: /** @type {Swatch} */ ("line") }))
          : [],
      layers: lines.map((line) => lineLayer({ ...line, step: true })),
      marks: {
        x: pick(time, rows).map(inSeconds),
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

/** @param {number} time in nanoseconds */
const inSeconds = (time) => time * NS;
