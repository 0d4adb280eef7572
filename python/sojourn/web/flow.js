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
    const lines = factsOf(head, tables, recordings, flow);
    note.replaceChildren(...lines.flatMap((line) => [line, element("br")]));
    body.replaceChildren();
    const span = Math.max(...recordings.map((recording) => (recording ? recording.span : 0)));
    recordings.forEach((recording, index) => {
      const prefix = head.runs.length > 1 ? `${head.runs[index].name}: ` : "";
      if (!recording) addBar(body, head, tables[index], index, flow, prefix);
      else frames.push(...recordingFrames(body, head, recording, span, prefix));
    });
    addPaths(body, head, recordings);
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
  return { entry, packets, pieces, gauges, span: entry.lasts_s, payload: run.payload };
}

/**
 * Returns size, hosts and times of the open flow in words: in one line, or if the runs have different
 * flows of this number, in a line for each.
 * @param {any} head
 * @param {Table[]} tables
 * @param {any[]} recordings
 * @param {number} flow
 */
function factsOf(head, tables, recordings, flow) {
  const facts = recordings.map((recording, index) => recording?.entry ?? rowFacts(tables[index], flow));
  const first = facts.find(Boolean);
  if (!first) return ["There is no such flow among those of the page."];
  const nameOfRun = (/** @type {number} */ index) =>
    head.runs.length > 1 ? `${head.runs[index].name}: ` : "";
  const timeIn = (/** @type {any} */ fact, /** @type {number} */ index) =>
    nameOfRun(index) + (fact ? timeOf(fact) : "not in the page");
  const isLongLived = first.outcome === "long_lived";
  const whatIs = (/** @type {any} */ fact) => flowOf(head.runs[facts.indexOf(fact)], fact);
  const isSame = head.pairs || facts.every((fact) => !fact || whatIs(fact) === whatIs(first));
  if (!isSame)
    return facts.map((fact, index) =>
      fact
        ? [`${nameOfRun(index)}${whatIs(fact)}`, timeOf(fact), ...notesOf(fact, recordings[index])].join("; ")
        : `${nameOfRun(index)}not in the page`,
    );
  const notes = facts.flatMap((fact, index) => (fact ? notesOf(fact, recordings[index]) : []));
  const ways = isLongLived ? [] : [facts.map(timeIn).join(", ")];
  return [[whatIs(first), ...ways, ...new Set(notes)].join("; ")];
}

/** @param {any} run @param {any} fact size and hosts of a flow */
function flowOf(run, fact) {
  const size = fact.outcome === "long_lived" ? "long-lived" : bytes(fact.size_bytes);
  const numbers = `host ${fact.source} → host ${fact.target}`;
  const names = `${nameOfHost(run, fact.source)} → ${nameOfHost(run, fact.target)}`;
  return `${size}, ${numbers}${names === numbers ? "" : ` (${names})`}`;
}

/** @param {any} fact FCT of a flow, or what is known of it */
function timeOf(fact) {
  const lasts = fact.lasts_s ?? fact.fct_s;
  if (fact.outcome === "finished") return `FCT ${seconds(lasts)}`;
  if (fact.outcome === "unfinished") return `unfinished, FCT ≥ ${seconds(lasts)}`;
  return fact.outcome.replace("_", "-");
}

/**
 * Returns the ideal FCT, and what was not recorded.
 * @param {any} fact
 * @param {any} recording
 */
function notesOf(fact, recording) {
  const notes = fact.ideal_fct_s ? [`ideal FCT ${seconds(fact.ideal_fct_s)}`] : [];
  if (!recording) return notes;
  const { shown, packets, hasOwnPackets, has_chain: hasChain, outcome } = recording.entry;
  if (!hasOwnPackets)
    notes.push("its packets were not recorded, since flows on a persistent connection share packets");
  if (shown < packets) notes.push(`${number(shown, 6)} of ${number(packets, 6)} packets are shown`);
  if (hasChain === false && outcome === "finished")
    notes.push("its causal chain is too long to be recorded");
  return notes;
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
    .map((/** @type {any} */ part) => ({ ...part, value: shareOf(head, table, part.name, row) }))
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
  if (!head.runs[index].hasPackets || head.runs[index].refusal) return;
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
 * Adds the links of a flow's paths; of two runs, if they differ, both. Each link that the page shows
 * is a button that chooses it.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {any[]} recordings
 */
function addPaths(parent, head, recordings) {
  const links = (/** @type {any} */ entry, /** @type {string[]} */ names) =>
    names.map((name) =>
      entry.hasLinks ? nameButton(name, () => choose({ link: name })) : element("span", {}, name),
    );
  const entries = recordings.map((recording) => recording?.entry).filter((entry) => entry?.forward.length);
  const paths = entries.map((entry) => [entry.forward, entry.reverse].join());
  const areSame = paths.every((path) => path === paths[0]);
  recordings.forEach((recording, index) => {
    const entry = recording?.entry;
    if (!entry?.forward.length || (areSame && entry !== entries[0])) return;
    const of = areSame ? "" : `${head.runs[index].name}: `;
    parent.append(element("p", { class: "row" }, `${of}Path:`, ...links(entry, entry.forward)));
    parent.append(element("p", { class: "row" }, `${of}Reverse path:`, ...links(entry, entry.reverse)));
  });
}
