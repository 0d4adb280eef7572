// Panel of one flow: its packets, its causal chain and its gauges on one axis of time.

const NS = 1e-9;
const LEFT = 64;

/**
 * Adds the panel of one flow.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {Table[]} tables of the runs' flows
 */
function addFlow(parent, head, tables) {
  const { card, row, note } = addCard(parent, "Flow", "", "wide");
  const title = /** @type {HTMLElement} */ (row.firstChild);
  const body = element("div");
  card.append(body);
  const numbers = [
    ...new Set(
      head.runs.flatMap((/** @type {any} */ run) =>
        run.recorded.map((/** @type {any} */ entry) => entry.flow),
      ),
    ),
  ].sort((one, two) => one - two);
  const choice = /** @type {HTMLSelectElement} */ (
    element(
      "select",
      {
        "aria-label": "recorded flows",
        onchange: () => choice.value && choose({ flow: Number(choice.value) }),
      },
      element("option", { value: "" }, "recorded flows"),
      ...numbers.map((flow) => element("option", { value: flow }, `flow ${flow}`)),
    )
  );
  if (numbers.length) row.append(choice);
  /** @type {Frame[]} */
  let frames = [];
  let turn = 0;

  async function fill() {
    const flow = chosen.flow;
    turn += 1;
    const mine = turn;
    card.hidden = flow === null;
    if (flow === null) return;
    const recordings = await Promise.all(
      head.runs.map((/** @type {any} */ run, /** @type {number} */ index) =>
        readRecording(run, index, flow),
      ),
    );
    // Inflating takes time: of two choices only the last is drawn.
    if (mine !== turn) return;
    frames.forEach((frame) => frame.remove());
    frames = [];
    title.textContent = `Flow ${flow}`;
    choice.value = numbers.includes(flow) ? String(flow) : "";
    note.textContent = factsOf(head, tables, recordings, flow);
    body.replaceChildren();
    /** @type {Map<string, Entry>} */
    const entries = new Map();
    const span = Math.max(...recordings.map((recording) => (recording ? recording.span : 0)));
    recordings.forEach((recording, index) => {
      const prefix = head.runs.length > 1 ? `${head.runs[index].name}: ` : "";
      if (!recording) addBar(body, head, tables[index], index, flow, prefix);
      else frames.push(...recordingFrames(body, head, recording, span, prefix, entries));
    });
    if (entries.size) body.append(element("p", { class: "names" }, ...[...entries.values()].map(nameOf)));
    const paths = recordings.find((recording) => recording?.entry.forward.length)?.entry;
    if (paths) addPath(body, paths);
  }
  followers.push((changed) => {
    if ("flow" in changed) fill();
  });
}

/**
 * Returns what was recorded of a flow, or null.
 * @param {any} run
 * @param {number} index
 * @param {number} flow
 */
async function readRecording(run, index, flow) {
  const entry = run.recorded.find((/** @type {any} */ one) => one.flow === flow);
  if (!entry) return null;
  const read = (/** @type {string} */ name) => {
    const block = `${name}${index}-${flow}`;
    return hasBlock(block) ? readTable(block) : Promise.resolve(null);
  };
  const [packets, pieces, gauges] = await Promise.all(["packets", "pieces", "gauges"].map(read));
  const times = packets ? [...packets.columns.sent, ...packets.columns.arrived] : [];
  const last = ends(times.filter(Number.isFinite))[1];
  const span = entry.fct_s ?? (Number.isFinite(last) ? last * NS : 0);
  return { entry, packets, pieces, gauges, span, payload: run.payload };
}

/**
 * Returns size, hosts and times of the open flow in words.
 * @param {any} head
 * @param {Table[]} tables
 * @param {any[]} recordings
 * @param {number} flow
 */
function factsOf(head, tables, recordings, flow) {
  const facts = recordings.map((recording, index) => recording?.entry ?? rowFacts(tables[index], flow));
  const first = facts.find(Boolean);
  if (!first) return "There is no such flow among those of the page.";
  const size = first.outcome === "long_lived" ? "long-lived" : bytes(first.size_bytes);
  const ways = facts.map((fact, index) => {
    const name = head.runs.length > 1 ? `${head.runs[index].name}: ` : "";
    if (!fact) return `${name}not in the page`;
    return (
      name + (fact.outcome === "finished" ? `FCT ${seconds(fact.fct_s)}` : fact.outcome.replace("_", "-"))
    );
  });
  const ideal = first.ideal_fct_s ? `; ideal FCT ${seconds(first.ideal_fct_s)}` : "";
  const thin = recordings.find((recording) => recording && recording.entry.shown < recording.entry.packets);
  const left = thin
    ? `; ${number(thin.entry.shown, 6)} of ${number(thin.entry.packets, 6)} packets are shown`
    : "";
  const long = facts.some((fact) => fact?.has_chain === false && fact.outcome === "finished")
    ? "; its causal chain is too long to be recorded"
    : "";
  return `${size}, host ${first.source} → host ${first.target}; ${ways.join(", ")}${ideal}${left}${long}`;
}

/** @param {any} fact FCT of a flow, or what is known of it */
function timeOf(fact) {
  const lasts = fact.lasts_s ?? fact.fct_s;
  if (fact.outcome === "finished") return `FCT ${seconds(lasts)}`;
  if (fact.outcome === "unfinished") return `unfinished, FCT ≥ ${seconds(lasts)}`;
  return fact.outcome.replace("_", "-");
}

/** @param {Table} table @param {number} flow */
function rowFacts(table, flow) {
  const row = table.columns.flow.indexOf(flow);
  if (row < 0) return null;
  return Object.fromEntries(Object.entries(table.columns).map(([name, values]) => [name, values[row]]));
}

/** @param {Entry} entry */
function nameOf({ name, colour, swatch: shape = "box" }) {
  const mark = swatch(colour);
  mark.classList.add(shape);
  return element("span", {}, mark, name);
}

/**
 * Adds the bar of a flow that was not recorded, and the command that records it.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {Table} table
 * @param {number} index
 * @param {number} flow
 * @param {string} prefix
 */
function addBar(parent, head, table, index, flow, prefix) {
  const row = table.columns.flow.indexOf(flow);
  if (row < 0) return;
  const parts = head.parts
    .map((/** @type {any} */ part) => ({ ...part, value: (table.columns[part.name]?.[row] ?? 0) / 1000 }))
    .filter((/** @type {any} */ part) => part.value > 0);
  const texts = largestParts(head, table, row, parts.length);
  if (parts.length) {
    const track = element("div", {
      class: "track",
      role: "img",
      "aria-label": `${prefix}FCT by cause: ${texts.join(", ")}`,
    });
    addSegments(track, parts, 1, (part) => `${part.label}: ${percent(part.value)}\n${part.meaning}`);
    parent.append(track, element("p", {}, `${prefix}${texts.join(", ")}`));
  }
  if (!head.runs[index].hasPackets) return;
  const command = `sojourn view ${head.source} --flow ${flow}`;
  const line = element(
    "p",
    { class: "soft" },
    "Its packets were not recorded. To record them: ",
    element("code", {}, command),
    " ",
  );
  copyButton(line, () => command);
  parent.append(line);
}

/**
 * Adds the links of a flow's path, each of which chooses its link.
 * @param {HTMLElement} parent
 * @param {any} entry
 */
function addPath(parent, entry) {
  const links = (/** @type {string[]} */ names) =>
    names.map((name) => element("button", { class: "plain", onclick: () => choose({ link: name }) }, name));
  parent.append(element("p", { class: "row" }, "Path:", ...links(entry.forward)));
  parent.append(element("p", { class: "row" }, "Reverse path:", ...links(entry.reverse)));
}
