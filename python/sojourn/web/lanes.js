// Panel of time series: flows in progress, and what the chosen link carried.

const RUN_COLOURS = ["#0072B2", "#D55E00"];

/**
 * Adds the panel of time series.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {{links: Links, totals: Table, series: any, fine: any}[]} runs
 * @param {() => string} busiest link, if none is chosen
 */
function addLanes(parent, head, runs, busiest) {
  const { card, note } = addCard(parent, "Over time", "");
  const end = Math.max(...head.runs.map((/** @type {any} */ run) => run.simulated));
  /** @type {{name: string, colour: string, swatch: Swatch}[]} */
  const names =
    head.runs.length > 1
      ? head.runs.map((/** @type {any} */ run, /** @type {number} */ index) => ({
          name: run.name,
          colour: RUN_COLOURS[index],
          swatch: "line",
        }))
      : [];
  if (names.length) card.append(element("p", { class: "names" }, ...names.map(nameOf)));
  const only = element(
    "button",
    { class: "plain", "aria-pressed": "false", onclick: () => choose({ isOnlyThen: !chosen.isOnlyThen }) },
    "only flows in progress then",
  );
  const whole = element("button", { class: "plain", onclick: () => choose({ time: null }) }, "whole run");
  const buttons = element("div", { class: "row", hidden: true }, only, whole);
  card.append(buttons);
  const body = element("div");
  card.append(body);
  /** @type {Frame[]} */
  let frames = [];

  const lane = (/** @type {any} */ options) => {
    const frame = new Frame(body, {
      together: "run",
      left: LEFT,
      direction: "x",
      table: "marks",
      ...options,
      x: { name: "time", range: [0, end], format: seconds },
      height: options.hasAxisBelow ? 110 : 84,
      select: (/** @type {Box | null} */ box) => choose({ time: box?.x ?? null }),
    });
    frame.selected = chosen.time && { x: chosen.time };
    return frame;
  };

  function fill() {
    frames.forEach((frame) => frame.remove());
    const link = chosen.link ?? busiest();
    const kinds = runs.some((run) => run.series) ? lanesOf(runs, link) : [];
    const options = [
      laneOf(
        "flows in progress (line: mean, band: up to the most)",
        "",
        (value) => number(value),
        head.runs.map((/** @type {any} */ { inProgress: { time, mean, max }, simulated }) => ({
          x: time,
          y: mean,
          high: max,
          end: simulated,
        })),
      ),
      ...kinds,
    ];
    frames = options.map((one, place) => lane({ ...one, hasAxisBelow: place === options.length - 1 }));
    frames.forEach((frame) => frame.draw());
    const drag = "Drag over a time to colour the network by it";
    note.textContent = kinds.length
      ? `Link ${link}. ${drag}.`
      : head.runs.some((/** @type {any} */ run) => run.hasPackets && !run.refusal)
        ? "Series of links were not recorded; sojourn view SCENARIO records them."
        : "";
  }

  followers.push((changed) => {
    if ("link" in changed || frames.length === 0) fill();
    only.setAttribute("aria-pressed", String(chosen.isOnlyThen));
    if ("time" in changed) {
      buttons.hidden = chosen.time === null;
      for (const frame of frames) {
        frame.selected = chosen.time && { x: chosen.time };
        frame.draw();
      }
    }
  });
}

/**
 * Returns the options of a lane with a line for each run.
 * @param {string} title
 * @param {string} link
 * @param {(value: number) => string} format
 * @param {({x: Numbers, y: Numbers, high?: Numbers, end?: number} | null)[]} lines `end`: of the last value
 * @param {number} [full] end of the axis
 */
function laneOf(title, link, format, lines, full) {
  const drawn = lines.flatMap((line, index) =>
    line ? [{ ...line, colour: RUN_COLOURS[index], index }] : [],
  );
  const most = Math.max(...drawn.map((line) => ends(line.high ?? line.y)[1]), 0);
  const points = drawn.flatMap((line) =>
    Array.from(line.x, (time, at) => ({
      time,
      value: line.y[at],
      high: line.high?.[at],
      index: line.index,
    })),
  );
  return {
    label: `${title} over time`,
    y: { name: link ? `${link}: ${title}` : title, range: [0, full ?? (most * 1.08 || 1)], format },
    layers: () =>
      drawn.flatMap(({ x, y, high, end, colour }) => {
        const held = (/** @type {Numbers} */ values) => heldUntil(end, x, values);
        const band = high && { ...held(y), low: held(y).y, high: held(high).y };
        return [
          ...(band ? [bandLayer({ ...band, colour, step: true, alpha: 0.25 })] : []),
          lineLayer({ ...held(y), colour, step: true, width: 1.5 }),
        ];
      }),
    marks: {
      x: points.map((point) => point.time),
      y: points.map((point) => point.value),
      group: points.map((point) => point.index),
      text: (/** @type {number} */ at) =>
        `${title} ${format(points[at].value)}` +
        `${points[at].high === undefined ? "" : `, up to ${format(points[at].high)}`}\n` +
        seconds(points[at].time),
    },
  };
}

/**
 * Returns the options of the lanes of a link: those that are zero throughout are left out.
 * @param {{links: Links, series: any, fine: any}[]} runs
 * @param {string} name
 */
function lanesOf(runs, name) {
  const lines = runs.map((run) => linkSeries(run, name));
  const count = (/** @type {number} */ value) => number(value, 4);
  /** @type {[string, string, (value: number) => string, string?][]} */
  const kinds = [
    ["utilisation", "utilisation", percent],
    ["queue", "queue (line: mean, band: up to the longest)", bytes, "longest"],
    ["marks", "ECN marks", count],
    ["drops", "drops and losses", count],
    ["paused", "time paused", seconds],
  ];
  return kinds.flatMap(([key, title, format, high]) => {
    const own = lines.map(
      (line) => line && { x: line.time, y: line[key], end: line.end, ...(high ? { high: line[high] } : {}) },
    );
    const most = Math.max(...own.map((line) => (line ? ends(line.high ?? line.y)[1] : 0)));
    if (!(most > 0) && key !== "utilisation") return [];
    // A packet counts in the bin in which it begins: a full bin may have more than its capacity.
    const full = key === "utilisation" ? Math.max(1.05, most * 1.02) : undefined;
    return [laneOf(title, name, format, own, full)];
  });
}

/**
 * Returns the series of a link, with zeros where nothing happened; null if there are none.
 * @param {{links: Links, series: any, fine: any}} run
 * @param {string} name
 * @returns {any}
 */
function linkSeries(run, name) {
  const link = run.links.names.indexOf(name);
  if (link < 0 || !run.series) return null;
  const source =
    run.fine && Array.prototype.includes.call(run.fine.table.columns.link, link) ? run.fine : run.series;
  const { table, width, end } = source;
  const rows = table.columns;
  const bins = Math.max(Math.ceil(end / width - 1e-9), ends(rows.bin)[1] + 1);
  const zeros = () => new Float64Array(bins);
  const line = {
    end,
    time: Float64Array.from({ length: bins }, (_, bin) => bin * width),
    utilisation: zeros(),
    queue: zeros(),
    longest: zeros(),
    marks: zeros(),
    drops: zeros(),
    paused: zeros(),
  };
  for (let row = 0; row < table.rows; row += 1) {
    if (rows.link[row] !== link) continue;
    const bin = rows.bin[row];
    line.utilisation[bin] = utilisationOf(source, run.links, link, rows.bytes[row], bin);
    line.queue[bin] = rows.queue_mean_bytes[row];
    line.longest[bin] = rows.queue_max_bytes[row];
    line.marks[bin] = rows.marks[row];
    line.drops[bin] = rows.drops[row] + rows.losses[row];
    line.paused[bin] = rows.paused_ns[row] * NS;
  }
  return line;
}
