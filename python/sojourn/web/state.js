// State of the page of a run: what is chosen, and the panels that follow it.

/**
 * @typedef {object} Chosen
 * @property {number | null} flow the open flow, by number
 * @property {Box | null} box the selected range of sizes and values
 * @property {string | null} link
 * @property {[number, number] | null} time in seconds since the start of the run
 * @property {boolean} isOnlyThen true: only flows in progress at that time are shown
 * @property {Set<string>} hidden names of causes whose flows are hidden
 */

/** @type {Chosen} */
const chosen = { flow: null, box: null, link: null, time: null, isOnlyThen: false, hidden: new Set() };

/** @type {((changed: Partial<Chosen>) => void)[]} functions of the panels */
const followers = [];

/**
 * Chooses a flow, a link, a time or a box: panels follow, and the address keeps it.
 * @param {Partial<Chosen>} changed
 */
function choose(changed) {
  Object.assign(chosen, changed);
  if (!chosen.time) chosen.isOnlyThen = false;
  const { flow, box, link, time, isOnlyThen } = chosen;
  const short = (/** @type {number} */ value) => String(Number(value.toPrecision(6)));
  // Flows at an edge belong to the box, so its edges are exact.
  const sides = box && [box.x, box.y].map((side) => (side ? side.join(",") : ","));
  // A page inside a notebook has no address of its own.
  if (location.protocol !== "about:")
    writeAddress({
      flow,
      link,
      box: sides && sides.join(","),
      t: time && time.map(short).join("-"),
      only: isOnlyThen ? 1 : null,
    });
  followers.forEach((follow) => follow(changed));
}

/**
 * Returns true if a change may change the selection.
 * @param {Partial<Chosen>} changed
 */
const selects = (changed) =>
  ["box", "time", "isOnlyThen", "hidden"].some((name) => name in changed);

/**
 * Chooses what the address states; returns a note for each link and time that the page lacks.
 * @param {number | null} flow is open if the address states none
 * @param {string[] | null} links names of all links, if the page shows them
 * @param {number} end of the longest run in seconds
 * @returns {string[]}
 */
function chooseFromAddress(flow, links, end) {
  const address = readAddress();
  const [left, right, low, high] = (address.get("box") ?? "")
    .split(",")
    .map((text) => (text === "" ? NaN : Number(text)));
  /** @type {Box} */
  const box = {};
  if (left <= right) box.x = [left, right];
  if (low <= high) box.y = [low, high];
  // A time may have a negative exponent: 5e-7-0.0001.
  const [, first, last] = (/^(.*\d)-(\d.*)$/.exec(address.get("t")?.replaceAll("e-", "e−") ?? "") ?? [])
    .map((text) => Number(text.replaceAll("−", "-")));
  const isTime = first <= last && first < end;
  const link = address.get("link") ?? null;
  const isLink = link === null || !links || links.includes(link);
  const number = Number(address.get("flow") ?? NaN);
  choose({
    flow: Number.isInteger(number) ? number : flow,
    box: box.x || box.y ? box : null,
    link: isLink ? link : null,
    time: isTime ? [Math.max(first, 0), Math.min(last, end)] : null,
    isOnlyThen: address.has("only"),
  });
  return [
    ...(isLink ? [] : [`The network has no link ${link}.`]),
    ...(first >= end ? [`The run ends at ${seconds(end)}, before the time in the address.`] : []),
  ];
}

/**
 * Adds a card with a heading and a line about it.
 * @param {HTMLElement} parent
 * @param {string} title
 * @param {string} about
 * @param {string} [width] a class of the style sheet
 */
function addCard(parent, title, about, width = "") {
  const note = element("p", { class: "soft" }, about);
  const row = element("div", { class: "row" }, element("h2", {}, title));
  const card = element("section", { class: `card ${width}`, "aria-label": title }, row, note);
  parent.append(card);
  return { card, row, note };
}
