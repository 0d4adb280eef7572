// Page of one run or two: the answer, and its panels.

const head = readJson("head");
const content = find("#content");

/** Adds the title, the answer and the counts. */
function addHead() {
  const buttons = element("div", { class: "row" });
  content.append(element("header", { class: "top" },
    element("h1", {}, head.title),
    element("span", { class: "soft" }, head.runs.map((/** @type {any} */ run) => run.name).join(" and ")),
    buttons));
  pageButtons(buttons, [["n p", "next, previous recorded flow"]]);
  if (head.sentence) {
    const [answer, ...reasons] = head.sentence.split("; ");
    content.append(element("p", { class: "answer" }, element("strong", {}, answer),
      reasons.length ? `; ${reasons.join("; ")}` : ""));
  }
  for (const run of head.runs) {
    const counts = run.counts.map((/** @type {string} */ count) => element("span", {}, count));
    content.append(element("div", { class: "counts soft" }, ...counts));
  }
}

addHead();
const panels = element("div", { class: "panels" });
content.append(panels);
const table = await readTable("flows0");
const cloud = slowdownCloud(head, head.runs[0], table);
/** @type {Set<number>} */
const recorded = new Set();
const flowsFrame = addFlows(panels, head, cloud, recorded);
if (table.rows) addBreakdown(panels, head, cloud, table);
const slowest = largest([...table.columns.flow.keys()], (row) => cloud.value[row], 1)[0];
chooseFromAddress(slowest === undefined ? null : table.columns.flow[slowest]);
// Tests read what is shown.
Object.assign(window, { shown: { head, table, cloud, chosen, flowsFrame } });
