// Page of one run or two: the answer, and its panels.

const head = readJson("head");
const content = find("#content");

/**
 * Returns a text with commands and options, which are between backticks, as code.
 * @param {string} text
 */
const withCode = (text) =>
  text.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part));

/** Adds the title, the answer and the counts. */
function addHead() {
  const buttons = element("div", { class: "row" });
  content.append(
    element(
      "header",
      { class: "top" },
      element("h1", {}, head.title),
      element("span", { class: "soft" }, head.runs.map((/** @type {any} */ run) => run.name).join(" and ")),
      buttons,
    ),
  );
  pageButtons(buttons, [
    ["Enter, click", "open the flow; in the network, choose the link"],
    ["drag", "select flows, or a time; in the panel of a flow, zoom in"],
    ["[ ]", "begin, end of the selection at the point"],
    ["n p", "next, previous recorded flow, in the panel of flows"],
  ]);
  if (head.sentence) {
    // The first clause ends at a semicolon outside parentheses.
    const [answer] = head.sentence.split(/; (?![^(]*\))/, 1);
    const reasons = withCode(head.sentence.slice(answer.length));
    content.append(element("p", { class: "answer" }, element("strong", {}, answer), ...reasons));
  }
  for (const run of head.runs) {
    const counts = run.counts.map((/** @type {string} */ count) => element("span", {}, count));
    const name = head.runs.length > 1 ? [element("strong", {}, run.name)] : [];
    const lines = [...run.fidelity, run.environment].map((/** @type {string} */ line) =>
      element("p", { class: "soft" }, ...withCode(line)),
    );
    content.append(element("div", { class: "counts soft" }, ...name, ...counts));
    content.append(element("div", { class: "lines" }, ...lines));
  }
}

addHead();
const addressNote = element("p", { class: "soft", role: "status" });
const panels = element("div", { class: "panels" });
content.append(addressNote, panels);
const tables = await Promise.all(
  head.runs.map((/** @type {any} */ _, /** @type {number} */ index) => readTable(`flows${index}`)),
);
const grids = await Promise.all(
  head.runs.map((/** @type {any} */ _, /** @type {number} */ index) =>
    hasBlock(`density${index}`) ? readTable(`density${index}`) : null,
  ),
);
/** @type {Set<number>[]} */
const recorded = head.runs.map(recordedOf);
const { cloud, flowsFrame } = addAllFlows();
addFlow(panels, head, tables);
/** @type {string[] | null} */
let linkNames = null;
if (head.network) {
  const runs = await Promise.all(head.runs.map(readNetwork));
  const network = addNetwork(panels, head, runs);
  addLanes(panels, head, runs, network.busiest);
  linkNames = runs[0].links.names;
} else panels.append(element("p", { class: "card wide soft" }, head.noNetwork));
followAddress(firstFlow());
addEventListener("hashchange", () => followAddress(chosen.flow));

/** @param {number | null} flow is open if the address states none */
function followAddress(flow) {
  const end = Math.max(...head.runs.map((/** @type {any} */ run) => run.simulated));
  addressNote.textContent = chooseFromAddress(flow, linkNames, end).join(" ");
  addressNote.hidden = addressNote.textContent === "";
}

/** Adds the panels of all flows: of one run, of the same flows in two runs, or of two runs. */
function addAllFlows() {
  const add = (/** @type {Cloud} */ cloud, /** @type {string} */ colours, /** @type {any} */ medians) => ({
    cloud,
    flowsFrame: addFlows(panels, head, cloud, colours, medians),
  });
  if (head.pairs) {
    const cloud = ratioCloud(head, tables);
    const added = add(
      cloud,
      "coloured by the part that changed most; flows that finished in both runs",
      head.pairs.medians,
    );
    if (added.flowsFrame) addChanges(panels, head, cloud, tables);
    return added;
  }
  const clouds = tables.map((table, index) => slowdownCloud(head, head.runs[index], table, grids[index]));
  const [run] = head.runs;
  const byCause = run.hasBreakdown ? "coloured by the largest part of the time beyond the ideal FCT" : "";
  const added =
    clouds.length > 1
      ? add(bothClouds(head, clouds), "the runs have different flows", { size: [], slowdown: [] })
      : add(clouds[0], byCause, run.medians);
  clouds.forEach((cloud, index) => {
    if (tables[index].rows) addBreakdown(panels, head, head.runs[index], cloud, tables[index]);
  });
  return added;
}

/**
 * Reads the links of a run, and their series if they were recorded.
 * @param {any} run
 * @param {number} index
 */
async function readNetwork(run, index) {
  const read = async (/** @type {string} */ name) => {
    if (!run.widths[name]) return null;
    const block = `capacity-${name}${index}`;
    return {
      table: await readTable(`${name}${index}`),
      width: run.widths[name],
      end: run.simulated,
      capacity: capacitiesOf(hasBlock(block) ? await readTable(block) : null),
    };
  };
  const totals = await readTable(`links${index}`);
  const [series, fine] = await Promise.all(["series", "fine"].map(read));
  return { links: linksOf(head.network, totals), totals, series, fine };
}

/** Returns the flow that is open first: of those that all runs recorded, or else one, the slowest. */
function firstFlow() {
  const rows = Array.from(cloud.flow, (_, row) => row);
  const inAll = rows.filter((row) => recorded.every((numbers) => numbers.has(cloud.flow[row])));
  const known = [inAll, rows.filter(cloud.isRecorded), rows].find((some) => some.length) ?? [];
  const [row] = largest(known, (row) => Math.abs(Math.log(cloud.value[row])), 1);
  return row === undefined ? ([...recorded[0]][0] ?? null) : cloud.flow[row];
}

// Tests read what is shown.
Object.assign(window, { shown: { head, tables, cloud, chosen, choose, flowsFrame, frames: frameGroups } });
