// Panel of the network: links in the colour of what they carried over the chosen time.

/**
 * @typedef {object} Links
 * @property {string[]} names
 * @property {number[]} cable of those between the same nodes, from 1
 * @property {Float64Array} from number of a node
 * @property {Float64Array} to
 * @property {Float64Array} rate in bits per second
 */

/**
 * Quantities of links, and how they are written.
 * @type {{key: string, name: string, column: string, format: (value: number) => string, full?: number}[]}
 */
const MEASURES = [
  { key: "utilisation", name: "utilisation", column: "used", format: percent, full: 1 },
  { key: "queue_max", name: "longest queue", column: "longest queue", format: bytes },
  { key: "queue_mean", name: "mean queue", column: "mean queue", format: bytes },
  { key: "marks", name: "ECN marks", column: "marks", format: (value) => number(value, 6) },
  { key: "drops", name: "drops and losses", column: "drops", format: (value) => number(value, 6) },
  { key: "paused", name: "time paused", column: "paused", format: seconds },
];
const RAMPS = {
  light: ["#e4e8ec", "#7db4de", "#e8c766", "#de7a36", "#b3261e"],
  dark: ["#343a43", "#3f8fd0", "#cfae3f", "#f0824a", "#ff6a5a"],
};
/** Colours of less, of equal and of more, in differences. */
const DIFFERENCES = { light: ["#0072b2", "#e4e8ec", "#d55e00"], dark: ["#5aaef0", "#343a43", "#f5803a"] };

/**
 * Returns the links of a run with their names; cables between the same nodes are numbered.
 * @param {any} network nodes
 * @param {Table} table
 * @returns {Links}
 */
function linksOf(network, table) {
  const { from, to, rate_bps: rates } = table.columns;
  const plain = Array.from(from, (node, link) => `${network.names[node]}->${network.names[to[link]]}`);
  /** @type {Map<string, number>} */
  const counts = new Map();
  const cable = plain.map((name) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return /** @type {number} */ (counts.get(name));
  });
  const names = plain.map((name, link) =>
    (counts.get(name) ?? 1) > 1 ? `${name} (cable ${cable[link]})` : name,
  );
  return { names, cable, from, to, rate: rates };
}

/**
 * Counters of links in bins of time.
 * @typedef {object} Series
 * @property {Table} table
 * @property {number} width of a bin in seconds
 * @property {number} end of the run in seconds, which may be inside the last bin
 * @property {Map<number, number[]>} capacity bits of each bin, of links with rate traces
 */

/**
 * Returns the bits of each bin by link.
 * @param {Table | null} table of the links with rate traces
 */
function capacitiesOf(table) {
  /** @type {Map<number, number[]>} */
  const capacities = new Map();
  for (let row = 0; row < (table?.rows ?? 0); row += 1) {
    const { link, bin, bits } = /** @type {Table} */ (table).columns;
    const own = capacities.get(link[row]) ?? [];
    own[bin[row]] = bits[row];
    capacities.set(link[row], own);
  }
  return capacities;
}

/**
 * Returns how long bins last until the end of the run.
 * @param {Series} series
 * @param {number} first
 * @param {number} [last]
 */
const lengthOf = ({ width, end }, first, last = first) =>
  Math.max(Math.min((last + 1) * width, end) - first * width, 0);

/**
 * Returns the share of a link's capacity that bytes in bins of time are.
 * @param {Series} series
 * @param {Links} links
 * @param {number} link
 * @param {number} carried bytes
 * @param {number} first bin
 * @param {number} [last]
 */
function utilisationOf(series, links, link, carried, first, last = first) {
  const own = series.capacity.get(link);
  const bits = own
    ? own.slice(first, last + 1).reduce((sum, one) => sum + one, 0)
    : links.rate[link] * lengthOf(series, first, last);
  return bits > 0 ? (8 * carried) / bits : 0;
}

/**
 * Returns each measure of each link over a time, or over the whole run.
 * @param {Links} links
 * @param {Table} totals of the run
 * @param {Series | null} series
 * @param {[number, number] | null} time in seconds
 * @returns {Record<string, Float64Array>}
 */
function measuresOf(links, totals, series, time) {
  const zeros = () => new Float64Array(links.names.length);
  const {
    utilisation,
    queue_mean_bytes: means,
    queue_max_bytes: longest,
    marks,
    drops,
    losses,
    paused_ns: paused,
  } = totals.columns;
  if (!time || !series) {
    return {
      utilisation,
      queue_mean: means,
      queue_max: longest,
      marks,
      drops: drops.map((/** @type {number} */ count, /** @type {number} */ link) => count + losses[link]),
      paused: paused.map((/** @type {number} */ value) => value * NS),
    };
  }
  const sums = {
    utilisation: zeros(),
    queue_mean: zeros(),
    queue_max: zeros(),
    marks: zeros(),
    drops: zeros(),
    paused: zeros(),
  };
  const { table, width } = series;
  const rows = table.columns;
  const [first, last] = binsOf(time, width);
  const whole = lengthOf(series, first, last);
  const carried = zeros();
  for (let row = 0; row < table.rows; row += 1) {
    if (rows.bin[row] < first || rows.bin[row] > last) continue;
    const link = rows.link[row];
    carried[link] += rows.bytes[row];
    if (whole > 0)
      sums.queue_mean[link] += (rows.queue_mean_bytes[row] * lengthOf(series, rows.bin[row])) / whole;
    sums.queue_max[link] = Math.max(sums.queue_max[link], rows.queue_max_bytes[row]);
    sums.marks[link] += rows.marks[row];
    sums.drops[link] += rows.drops[row] + rows.losses[row];
    sums.paused[link] += rows.paused_ns[row] * NS;
  }
  carried.forEach((count, link) => {
    sums.utilisation[link] = utilisationOf(series, links, link, count, first, last);
  });
  return sums;
}

/**
 * Returns the first and the last bin that a time overlaps.
 * @param {[number, number]} time
 * @param {number} width
 */
function binsOf([begin, end], width) {
  const first = Math.max(Math.floor(begin / width), 0);
  return [first, Math.max(Math.ceil(end / width) - 1, first)];
}

/**
 * Returns the interval of the bins that a time overlaps, in words.
 * @param {[number, number]} time
 * @param {Series} series
 */
function binsInWords(time, { width, end }) {
  const [first, last] = binsOf(time, width);
  const edges = [first, last + 1].map((bin) => Math.min(bin * width, end));
  return `from ${edges.map((edge) => secondsInSteps(edge, width)).join(" to ")}, in bins of ${seconds(width)}`;
}

/**
 * Adds the panel of the network.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {{links: Links, totals: Table, series: any}[]} runs
 */
function addNetwork(parent, head, runs) {
  const { card, row, note } = addCard(parent, "Network", "");
  let measure = MEASURES[0];
  let which = 0;
  const [{ links }] = runs;
  const present = MEASURES.filter(
    ({ key }) =>
      key === "utilisation" ||
      runs.some((run) => ends(measuresOf(links, run.totals, null, null)[key])[1] > 0),
  );
  const choice = /** @type {HTMLSelectElement} */ (
    element(
      "select",
      {
        "aria-label": "quantity",
        onchange: () => {
          measure = present[Number(choice.value)];
          fill();
        },
      },
      ...present.map(({ name }, place) => element("option", { value: place }, name)),
    )
  );
  row.append(choice);
  if (runs.length > 1) {
    const shown = /** @type {HTMLSelectElement} */ (
      element(
        "select",
        {
          "aria-label": "run",
          onchange: () => {
            which = Number(shown.value);
            fill();
          },
        },
        ...[
          ...head.runs.map((/** @type {any} */ run) => run.name),
          `${head.runs[1].name} less ${head.runs[0].name}`,
        ].map((name, place) => element("option", { value: place }, name)),
      )
    );
    row.append(shown);
  }
  const drawing = drawNetwork(head.network, links, {
    tip: (link) => tipOf(link),
    open: (link) => choose({ link: links.names[link] }),
    order: () => order,
  });
  const scale = element("p", { class: "scale soft" });
  const busiest = element("div", { class: "facts" });
  card.append(drawing.root, scale, busiest);
  /** @type {Record<string, Float64Array>} */
  let values = {};
  /** @type {number[]} */
  let order = [];

  const tipOf = (/** @type {number} */ link) =>
    [
      links.names[link],
      rate(links.rate[link]),
      ...present.map(({ key, name, format }) => `${name}: ${signed(values[key][link], format)}`),
    ].join("\n");

  function fill() {
    const all = runs.map((run) => measuresOf(links, run.totals, run.series, chosen.time));
    values =
      which < runs.length
        ? all[which]
        : Object.fromEntries(
            Object.keys(all[0]).map((key) => [
              key,
              all[1][key].map((value, link) => value - all[0][key][link]),
            ]),
          );
    const own = values[measure.key];
    const sizes = own.map(Math.abs);
    order = largest([...own.keys()], (link) => sizes[link], own.length > 2000 ? 500 : own.length);
    const most = sizes[order[0]] ?? 0;
    const full = which < runs.length && measure.full ? measure.full : most || 1;
    drawing.paint(
      (link) => shade(own[link] / full, which >= runs.length),
      chosen.link ?? links.names[order[0]],
    );
    const { time } = chosen;
    const shown = which < runs.length ? [runs[which]] : runs;
    const spans = shown.flatMap(({ series }) => (time && series ? [binsInWords(time, series)] : []));
    const when = [...new Set(spans)].join(" and ") || "over the whole run";
    note.textContent =
      most > 0
        ? `${measure.name} ${when}; most at ${links.names[order[0]]}, `
          + signed(own[order[0]], measure.format)
        : `${measure.name} ${when}: none`;
    const low = which < runs.length ? "0" : signed(-full, measure.format);
    const bar = element("span", { class: "ramp" });
    bar.style.background = `linear-gradient(to right, ${rampOf(which >= runs.length).join(", ")})`;
    scale.replaceChildren(
      low,
      bar,
      signed(full, measure.format),
      drawing.hasHosts ? " ◤ from the host or up, ◢ to the host or down" : "",
    );
    const list = tableOf(
      {
        head: ["link", ...present.slice(0, 5).map(({ column }) => column)],
        rows: order
          .slice(0, 5)
          .map((link) => [
            links.names[link],
            ...present.slice(0, 5).map(({ key, format }) => signed(values[key][link], format)),
          ]),
      },
      "Links that have most",
    );
    list.querySelectorAll("tbody tr").forEach((line, place) => {
      const name = links.names[order[place]];
      line.classList.toggle("chosen", name === chosen.link);
      /** @type {any} */ (line).cells[0].replaceChildren(
        nameButton(name, () => choose({ link: name })),
      );
    });
    busiest.replaceChildren(list);
  }
  themeListeners.add(fill);
  followers.push((changed) => {
    if ("time" in changed || "link" in changed) fill();
  });
  return { busiest: () => links.names[order[0]] };
}

/** @param {number} value @param {(value: number) => string} format */
const signed = (value, format) => (value < 0 ? `−${format(-value)}` : format(value));

/** @param {boolean} isDifference */
const rampOf = (isDifference) =>
  (isDifference ? DIFFERENCES : RAMPS)[
    /** @type {"light" | "dark"} */ (document.documentElement.dataset.theme)
  ];

/**
 * Returns the colour of a share of the scale, from 0 to 1, or from −1 to 1 if it is a difference.
 * @param {number} share
 * @param {boolean} isDifference
 */
function shade(share, isDifference) {
  const colours = rampOf(isDifference);
  const at = isDifference ? (share + 1) / 2 : share;
  const place = clamp(at, 0, 1) * (colours.length - 1);
  const low = Math.min(Math.floor(place), colours.length - 2);
  const [one, two] = [rgbOf(colours[low]), rgbOf(colours[low + 1])];
  const mixed = one.map((value, side) => Math.round(value + (two[side] - value) * (place - low)));
  return `rgb(${mixed.join(" ")})`;
}
