// Two runs with the same flows: the ratio of their completion times, and what changed.

/**
 * Returns the flows that finished in both runs, with the ratio of their completion times.
 * @param {any} head
 * @param {Table[]} tables of the two runs, with the same flows in each row
 * @returns {Cloud}
 */
function ratioCloud(head, [one, two]) {
  const { flow, size_bytes: size, fct_s: before } = one.columns;
  const { fct_s: after, change } = two.columns;
  const [first, second] = head.runs.map((/** @type {any} */ run) => run.name);
  const value = after.map((/** @type {number} */ time, /** @type {number} */ row) => time / before[row]);
  const [least, most] = ends(value);
  const recorded = head.runs.map(recordedOf);
  const causes = [
    ...head.parts.map((/** @type {any} */ part) => ({ name: part.label, colour: part.colour })),
    { name: "as before", colour: "--near" },
  ];
  return {
    flow,
    size,
    value,
    cause: change,
    causes,
    weight: weightsOf(head.runs[0], one),
    isRecorded: (row) => recorded.some((/** @type {Set<number>} */ numbers) => numbers.has(flow[row])),
    isDuring: duringOf(one),
    grids: [],
    up: {
      name: `FCT under ${second} / FCT under ${first}`,
      colour: "--ink",
      range: [Math.min(least, 0.8) / 1.3, Math.max(most, 1.25) * 1.3],
      rule: 1,
    },
    text: (row) =>
      [
        nameOfFlow(head.runs[0], one, row),
        `${seconds(before[row])} under ${first}, ${seconds(after[row])} under ${second}: ` +
          times(value[row]),
        ...largestChanges(head, [one, two], row, 3),
      ].join("\n"),
  };
}

/**
 * Returns how much a part of a flow changed, in seconds.
 * @param {any} head
 * @param {Table[]} tables
 * @param {string} part
 * @param {number} row
 */
function changeOf(head, [one, two], part, row) {
  const time = (/** @type {Table} */ table) =>
    shareOf(head, table, part, row) * table.columns.fct_s[row];
  return time(two) - time(one);
}

/**
 * Returns the largest changes of a flow's parts in words. Those below the resolution of parts, or
 * below 2 % of the FCT's change, are dropped.
 * @param {any} head
 * @param {Table[]} tables
 * @param {number} row
 * @param {number} most
 */
function largestChanges(head, tables, row, most) {
  const changes = head.parts.map((/** @type {any} */ part) => ({
    label: part.label,
    by: changeOf(head, tables, part.name, row),
  }));
  const [before, after] = tables.map((table) => table.columns.fct_s[row]);
  const least = Math.max(0.02 * Math.abs(after - before), Math.max(before, after) / head.shareSteps);
  return changes
    .filter((/** @type {any} */ one) => Math.abs(one.by) > least)
    .sort((/** @type {any} */ one, /** @type {any} */ two) => Math.abs(two.by) - Math.abs(one.by))
    .slice(0, most)
    .map((/** @type {any} */ one) => `${one.label} ${one.by > 0 ? "+" : "−"}${seconds(Math.abs(one.by))}`);
}

/**
 * Adds the panel of what changed: bars by size and class, and the flows that changed most.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {Cloud} cloud
 * @param {Table[]} tables
 */
function addChanges(parent, head, cloud, tables) {
  const [first, second] = head.runs.map((/** @type {any} */ run) => run.name);
  const { card, note } = addCard(parent, "What changed", "");
  note.textContent =
    `Mean FCT under ${second}, in mean FCTs under ${first}. Parts that ${second} saves are left of ` +
    "the line, parts that it adds are right of it.";
  const bars = element("div", { class: "bars" });
  const list = element("div", { class: "facts" });
  const heading = element("h3", {}, "Flows");
  const orders = {
    most: [`largest change of FCT`, (/** @type {number} */ row) => Math.abs(after[row] - before[row])],
    slower: [`${second} slower`, (/** @type {number} */ row) => cloud.value[row]],
    faster: [`${second} faster`, (/** @type {number} */ row) => -cloud.value[row]],
  };
  const { fct_s: before } = tables[0].columns;
  const { fct_s: after } = tables[1].columns;
  /** @type {keyof typeof orders} */
  let order = "most";
  const choice = element(
    "select",
    {
      "aria-label": "order of flows",
      onchange: () => {
        order = /** @type {any} */ (choice).value;
        fillFlows();
      },
    },
    ...Object.entries(orders).map(([key, [name]]) => element("option", { value: key }, String(name))),
  );
  card.append(
    bars,
    note,
    ...changeLegend(head),
    element("div", { class: "row" }, heading, choice),
    list,
  );

  function fillBars() {
    const groups = head.pairs.groups.filter(
      (/** @type {any} */ group) => !group.isAll || head.pairs.groups.length === 1,
    );
    const selection = hasSelection(cloud) ? changeGroup(head, tables, cloud, selectedRows(cloud)) : null;
    const all = selection ? [...groups, selection] : groups;
    const sides = all.map((/** @type {any} */ group) => sidesOf(group.parts));
    const left = Math.max(...sides.map((/** @type {number[]} */ side) => side[0]), 0.05);
    const right = Math.max(...sides.map((/** @type {number[]} */ side) => side[1]), 0.05);
    bars.replaceChildren(...all.map((/** @type {any} */ group) => changeRow(head, group, left, right)));
  }

  function fillFlows() {
    const key = /** @type {(row: number) => number} */ (orders[order][1]);
    const rows = largest(selectedRows(cloud), key, SLOWEST);
    const { flow, size_bytes: size } = tables[0].columns;
    heading.textContent = hasSelection(cloud) ? "Flows in the selection" : "Flows";
    list.replaceChildren(
      flowTable(
        ["size", first, second, "ratio", "mostly"],
        rows.map((row) => ({
          flow: flow[row],
          colour: cloud.causes[cloud.cause[row]].colour,
          cells: [
            bytes(size[row]),
            seconds(before[row]),
            seconds(after[row]),
            times(cloud.value[row]),
            cloud.causes[cloud.cause[row]].name,
          ],
        })),
        "Flows that changed",
      ),
    );
  }
  followers.push((changed) => {
    if (selects(changed)) fillBars();
    if ("flow" in changed || selects(changed)) fillFlows();
  });
}

/** @param {any} head */
function changeLegend(head) {
  const groups = head.pairs.groups.map((/** @type {any} */ group) => ({
    ...group,
    parts: group.parts.map(Math.abs),
    finished: 1,
  }));
  return partLegend(head, groups);
}

/** @param {number[]} parts @returns {[number, number]} what is saved, and what is added */
const sidesOf = (parts) => [
  -parts.reduce((sum, part) => sum + Math.min(part, 0), 0),
  parts.reduce((sum, part) => sum + Math.max(part, 0), 0),
];

/**
 * @param {any} head
 * @param {Table[]} tables
 * @param {Cloud} cloud
 * @param {number[]} rows
 */
function changeGroup(head, tables, cloud, rows) {
  const [before, after] = tables.map((table) => table.columns.fct_s);
  const sum = (/** @type {(row: number) => number} */ value) =>
    rows.reduce((total, row) => total + cloud.weight[row] * value(row), 0);
  const base = sum((row) => before[row]) || 1;
  return {
    name: "selection",
    flows: Math.round(sum(() => 1)),
    ratio: sum((row) => after[row]) / base,
    parts: head.parts.map(
      (/** @type {any} */ part) => sum((row) => changeOf(head, tables, part.name, row)) / base,
    ),
  };
}

/**
 * Returns the bar of a group: what was saved left of the line, what was added right of it.
 * @param {any} head
 * @param {any} group
 * @param {number} left of the scale
 * @param {number} right
 */
function changeRow(head, group, left, right) {
  const scale = left + right;
  const track = element("div", { class: "track", role: "img" });
  const parts = head.parts.map((/** @type {any} */ part, /** @type {number} */ index) => ({
    ...part,
    by: group.parts[index],
    value: Math.abs(group.parts[index]),
  }));
  const saved = parts
    .filter((/** @type {any} */ part) => part.by < 0)
    .sort((/** @type {any} */ one, /** @type {any} */ two) => one.value - two.value);
  const added = parts
    .filter((/** @type {any} */ part) => part.by > 0)
    .sort((/** @type {any} */ one, /** @type {any} */ two) => two.value - one.value);
  const gap = element("span");
  gap.style.width = `${(100 * (left - sidesOf(group.parts)[0])) / scale}%`;
  track.append(gap);
  const text = (/** @type {any} */ part) =>
    `${part.label}: ${part.by > 0 ? "+" : "−"}${percent(part.value)}\n${part.meaning}`;
  addSegments(
    track,
    [...saved, ...added].filter((part) => part.value > 0.0005),
    scale,
    text,
  );
  track.setAttribute(
    "aria-label",
    `${group.name}: ${number(group.ratio)} of the time: ` +
      [...saved, ...added]
        .map((part) => `${part.label} ${part.by > 0 ? "+" : "−"}${percent(part.value)}`)
        .join(", "),
  );
  const line = element("span", { class: "one" });
  line.style.left = `${(100 * left) / scale}%`;
  track.append(line);
  return element(
    "div",
    { class: "bar" },
    element("span", { class: "name" }, `${group.name}`),
    track,
    element("span", { class: "value" }, times(group.ratio)),
  );
}
