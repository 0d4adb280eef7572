// Panel of the FCT breakdown: bars by size and class, and the slowest flows.

const SLOWEST = 8;

/**
 * @typedef {object} Group
 * @property {string} name
 * @property {number} flows
 * @property {Record<string, number | null>} values statistics of slowdowns
 * @property {string[]} atLeast names of statistics that are lower bounds
 * @property {number | null} finished mean slowdown of finished flows
 * @property {number[]} [parts]
 */

const STATISTICS = { p50: "median", mean: "mean", p99: "p99" };

/**
 * Adds the panel of the FCT breakdown.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {any} run its part of the head
 * @param {Cloud} cloud
 * @param {Table} table
 */
function addBreakdown(parent, head, run, cloud, table) {
  const of = head.runs.length > 1 ? `: ${run.name}` : "";
  const { card, note } = addCard(parent, `${run.hasBreakdown ? "FCT breakdown" : "Slowdowns"}${of}`, "");
  const bars = element("div", { class: "bars" });
  const sizes = element("div", { class: "facts" });
  const slowest = element("div", { class: "facts" });
  /** @type {"slowdown" | "excess"} */
  let order = "slowdown";
  const choice = element(
    "select",
    {
      "aria-label": "order of flows",
      onchange: () => {
        order = /** @type {any} */ (choice).value;
        fillSlowest();
      },
    },
    element("option", { value: "slowdown" }, "by slowdown"),
    element("option", { value: "excess" }, "by time beyond the ideal FCT"),
  );
  const heading = element("h3", {}, "Slowest flows");
  card.append(
    bars,
    note,
    ...partLegend(head, run.groups),
    sizes,
    element("div", { class: "row" }, heading, choice),
    slowest,
  );
  note.textContent = run.hasBreakdown
    ? "Mean slowdown of finished flows, divided by what they waited for; dashed: the ideal FCT."
    : "Mean slowdown of finished flows; dashed: the ideal FCT. " +
      (run.refusal ? `It has no FCT breakdown: ${run.refusal}.` : "sojourn view SCENARIO divides it by cause.");

  function fillBars() {
    /** @type {Group[]} */
    const groups = run.groups.filter((/** @type {any} */ group) => !group.isAll || run.groups.length === 1);
    const selection = hasSelection(cloud) ? groupOf(head, table, cloud, selectedRows(cloud), run) : null;
    const all = selection ? [...groups, selection] : groups;
    const scale = Math.max(...groups.map((group) => group.finished ?? 0), 1.05);
    const own = selection?.finished ?? 0;
    const isApart = own > 3 * scale;
    const common = isApart ? scale : Math.max(scale, own);
    bars.replaceChildren(
      ...all.map((group) => {
        const isOwn = group === selection && isApart;
        return barRow(head, group, isOwn ? own : common, isOwn);
      }),
    );
    const hasBounds = all.some((group) => group.atLeast.length);
    sizes.replaceChildren(
      ...(hasBounds ? [element("p", { class: "soft" }, "All flows, unfinished ones with lower bounds (≥):")] : []),
      tableOf(
        {
          head: ["size", "flows", ...Object.values(STATISTICS)],
          rows: all.map((group) => [
            group.name,
            number(group.flows, 6),
            ...Object.keys(STATISTICS).map((name) =>
              group.values[name] === null
                ? "–"
                : `${group.atLeast.includes(name) ? "≥ " : ""}${times(group.values[name] ?? NaN)}`,
            ),
          ]),
        },
        `Slowdown by size${of}`,
      ),
    );
  }

  function fillSlowest() {
    const { flow, fct_s: fct, ideal_fct_s: ideal, size_bytes: size, outcome } = table.columns;
    const key = (/** @type {number} */ row) =>
      order === "slowdown" ? fct[row] / ideal[row] : fct[row] - ideal[row];
    const rows = largest(selectedRows(cloud), key, SLOWEST);
    heading.textContent = hasSelection(cloud) ? "Slowest flows in the selection" : "Slowest flows";
    slowest.replaceChildren(
      flowTable(
        ["size", "FCT", "slowdown", ...(run.hasBreakdown ? ["main cause"] : [])],
        rows.map((row) => ({
          flow: flow[row],
          colour: run.hasBreakdown ? cloud.causes[cloud.cause[row]].colour : null,
          cells: [
            bytes(size[row]),
            ...timesOf(outcome[row], fct[row], ideal[row]),
            ...(run.hasBreakdown ? [cloud.causes[cloud.cause[row]].name] : []),
          ],
        })),
        `Slowest flows${of}`,
      ),
    );
  }

  followers.push((changed) => {
    if (selects(changed)) fillBars();
    if ("flow" in changed || selects(changed)) fillSlowest();
  });
}

/**
 * Returns FCT and slowdown of a flow in words: of an unfinished one lower bounds.
 * @param {string} outcome
 * @param {number} lasts
 * @param {number} ideal
 */
function timesOf(outcome, lasts, ideal) {
  if (outcome === "finished") return [seconds(lasts), times(lasts / ideal)];
  if (outcome === "unfinished") return [`≥ ${seconds(lasts)}`, `≥ ${times(Math.max(lasts / ideal, 1))}`];
  return [outcome, "–"];
}

/**
 * Returns true if a box, a hidden cause or a time selects some of the flows.
 * @param {Cloud} cloud
 */
const hasSelection = (cloud) =>
  chosen.box !== null || chosen.isOnlyThen || cloud.causes.some(({ name }) => chosen.hidden.has(name));

/**
 * Returns the rows of the selection: flows that are shown, and in the box if one is chosen.
 * @param {Cloud} cloud
 */
function selectedRows(cloud) {
  const { x = [0, Infinity], y = [0, Infinity] } = chosen.box ?? {};
  const rows = [];
  for (let row = 0; row < cloud.value.length; row += 1) {
    const isInside = contains(x, cloud.size[row]) && contains(y, cloud.value[row]);
    if (isInside && isShown(cloud, row)) rows.push(row);
  }
  return rows;
}

/**
 * Returns a table of flows; each row opens its flow.
 * @param {string[]} columns after the flow's number
 * @param {{flow: number, colour: string | null, cells: string[]}[]} rows the last cell names the colour
 * @param {string} caption
 */
function flowTable(columns, rows, caption) {
  const list = tableOf(
    { head: ["flow", ...columns], rows: rows.map(({ flow, cells }) => [flow, ...cells]) },
    caption,
  );
  list.querySelectorAll("tbody tr").forEach((line, place) => {
    const { flow, colour: name, cells } = rows[place];
    line.classList.toggle("chosen", flow === chosen.flow);
    const own = /** @type {HTMLTableRowElement} */ (line).cells;
    own[0].replaceChildren(
      nameButton(String(flow), () => choose({ flow }), `open flow ${flow}`),
    );
    if (name) own[cells.length].prepend(swatch(name));
  });
  return list;
}

/**
 * Returns the names of the parts that groups have, with their colours.
 * @param {any} head
 * @param {Group[]} groups
 */
function partLegend(head, groups) {
  const isPresent = (/** @type {number} */ index) =>
    groups.some(({ parts, finished }) => (parts?.[index] ?? 0) > 0.001 * (finished ?? 0));
  const present = head.parts.filter((/** @type {any} */ _, /** @type {number} */ index) =>
    isPresent(index),
  );
  const names = present.map((/** @type {any} */ part) =>
    element("span", { title: part.meaning }, swatch(part.colour), part.label),
  );
  return names.length ? [element("p", { class: "names" }, ...names)] : [];
}

/** @param {string} name of a colour */
function swatch(name) {
  const mark = element("span", { class: "swatch" });
  mark.style.setProperty("--swatch", styleColour(name));
  return mark;
}

/**
 * Returns the rows with the largest keys, the largest first.
 * @param {number[]} rows
 * @param {(row: number) => number} key
 * @param {number} most
 */
function largest(rows, key, most) {
  /** @type {number[]} */
  const found = [];
  for (const row of rows) {
    if (found.length === most && key(row) <= key(found[most - 1])) continue;
    const place = found.findIndex((other) => key(row) > key(other));
    found.splice(place < 0 ? found.length : place, 0, row);
    found.length = Math.min(found.length, most);
  }
  return found;
}

/**
 * Returns the statistics of rows, as Python computes those of sizes; a row counts as many flows as
 * its weight. Terminated flows are not among the flows.
 * @param {any} head
 * @param {Table} table
 * @param {Cloud} cloud
 * @param {number[]} rows
 * @param {any} run
 * @returns {Group}
 */
function groupOf(head, table, cloud, rows, run) {
  const { fct_s: fct, ideal_fct_s: ideal, outcome } = table.columns;
  const isFinished = (/** @type {number} */ row) => outcome[row] === "finished";
  const slowdown = (/** @type {number} */ row) => Math.max(fct[row] / ideal[row], isFinished(row) ? 0 : 1);
  const all = rows.filter((row) => outcome[row] !== "terminated");
  all.sort((one, two) => slowdown(one) - slowdown(two));
  const finished = all.filter(isFinished);
  const sum = (/** @type {number[]} */ some, /** @type {(row: number) => number} */ value) =>
    some.reduce((total, row) => total + cloud.weight[row] * value(row), 0);
  const count = sum(all, () => 1);
  const mean = (/** @type {number[]} */ some, /** @type {(row: number) => number} */ value) =>
    some.length ? sum(some, value) / sum(some, () => 1) : null;
  const ofRank = (/** @type {number[]} */ some, /** @type {number} */ rank) => {
    let below = 0;
    const found = some.find((row) => (below += cloud.weight[row]) >= rank);
    return found === undefined ? null : slowdown(found);
  };
  /** @type {string[]} */
  const atLeast = finished.length < all.length ? ["mean"] : [];
  const percentile = (/** @type {string} */ name, /** @type {number} */ share, /** @type {number} */ least) => {
    if (count < least) return null;
    const rank = share * count * (1 - 1e-12);
    const value = ofRank(all, rank);
    // Larger values in place of the lower bounds would change it.
    if (ofRank(finished, rank) !== value) atLeast.push(name);
    return value;
  };
  return {
    name: "selection",
    flows: Math.round(count),
    values: { p50: percentile("p50", 0.5, 2), mean: mean(all, slowdown), p99: percentile("p99", 0.99, 100) },
    atLeast,
    finished: mean(finished, slowdown),
    ...(run.hasBreakdown && finished.length
      ? {
          parts: head.parts.map((/** @type {any} */ part) =>
            mean(finished, (row) => slowdown(row) * shareOf(head, table, part.name, row)),
          ),
        }
      : {}),
  };
}

/**
 * Returns the bar of a group: its name, the parts of the mean slowdown, and the mean.
 * @param {any} head
 * @param {Group} group
 * @param {number} scale slowdown of the full width
 * @param {boolean} isApart true: the bar has a scale of its own
 */
function barRow(head, group, scale, isApart) {
  const track = element("div", { class: "track", role: "img" });
  const parts = group.parts
    ? head.parts.map((/** @type {any} */ part, /** @type {number} */ index) => ({
        ...part,
        value: group.parts?.[index] ?? 0,
      }))
    : [{ label: "slowdown", colour: "--plain", value: group.finished ?? 0 }];
  const present = parts.filter((/** @type {any} */ part) => part.value > 0.001 * (group.finished ?? 1));
  track.setAttribute(
    "aria-label",
    `${group.name}: mean slowdown ${number(group.finished ?? NaN)}: ` +
      present.map((/** @type {any} */ part) => `${part.label} ${number(part.value)}`).join(", "),
  );
  addSegments(
    track,
    present,
    scale,
    (part) =>
      `${part.label}: ${number(part.value)} of ${times(group.finished ?? NaN)}` +
      (part.meaning ? `\n${part.meaning}` : ""),
  );
  const one = element("span", { class: "one" });
  one.style.left = `${100 / scale}%`;
  track.append(one);
  const value = group.finished === null ? "–" : times(group.finished);
  return element(
    "div",
    { class: "bar" },
    element("span", { class: "name" }, isApart ? `${group.name} (own scale)` : group.name),
    track,
    element("span", { class: "value" }, value),
  );
}

/**
 * Adds a segment for each part, with a tip.
 * @param {HTMLElement} track
 * @param {{label: string, colour: string, value: number, meaning?: string}[]} parts
 * @param {number} scale value of the full width
 * @param {(part: any) => string} text
 */
function addSegments(track, parts, scale, text) {
  for (const part of parts) {
    const segment = element("span", {
      onmousemove: (/** @type {MouseEvent} */ event) => showTip(text(part), event.clientX, event.clientY),
      onmouseleave: () => (find("#tip").hidden = true),
    });
    segment.style.width = `${(100 * part.value) / scale}%`;
    segment.style.background = styleColour(part.colour);
    track.append(segment);
  }
}
