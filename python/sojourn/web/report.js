// Report: figures that are drawn as they come near the view, their tabs, and the filter.

/** Pictures by the names of their blocks, once they are inflated. @type {Map<string, any>} */
const pictures = new Map();
/** @type {Map<Element, () => void>} functions that draw a figure which is not drawn yet */
const undrawn = new Map();

/**
 * Returns the picture of a block.
 * @param {string} id
 */
async function readPicture(id) {
  if (!pictures.has(id)) pictures.set(id, JSON.parse(await readText(`${id}.drawn`)));
  return pictures.get(id);
}

/** @typedef {(fill: () => void | (() => void)) => void} Fill replaces contents, if still wanted */

/**
 * Makes the place of a figure, which is drawn when it is near the view.
 * @param {HTMLElement} place
 */
function addFigure(place) {
  const { drawn: introduction, id = introduction ?? "", title = "" } = place.dataset;
  const tabs = [
    { name: "Plot", block: "drawn", show: showPlot },
    { name: "Picture", block: "svg", show: showPicture },
    { name: "Table", block: "table", show: showTable },
    { name: "Scenarios", block: "scenarios", show: showScenarios },
  ].filter(({ block }) => hasBlock(`${id}.${block}`));
  let turn = 0;
  /** @type {void | (() => void)} */
  let remove;
  const views = tabs.map(({ name, show }) => ({
    name,
    show: () => {
      turn += 1;
      const mine = turn;
      // Reading takes time: of two buttons pressed at once the last is shown.
      show(place, id, (fill) => {
        if (turn !== mine) return;
        remove?.();
        remove = fill();
      });
    },
  }));
  const bar = /** @type {HTMLElement | null} */ (place.closest(".figure")?.querySelector(".tabs"));
  if (bar) addTabs(bar, place, views, `${title}: views`);
  undrawn.set(place, views[0].show);
  nearView.observe(place);
}

const nearView = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) drawNow(target);
}, { rootMargin: "800px 0px" });

/** @param {Element} place */
function drawNow(place) {
  undrawn.get(place)?.();
  undrawn.delete(place);
  nearView.unobserve(place);
}

/**
 * @param {HTMLElement} place
 * @param {string} id
 * @param {Fill} fill
 */
async function showPlot(place, id, fill) {
  // Without waiting if possible: printing does not wait.
  if (!pictures.has(id)) await readPicture(id);
  const { title = "", height } = place.dataset;
  fill(() => drawFigure(place, pictures.get(id), title, Number(height)));
}

/**
 * @param {HTMLElement} place
 * @param {string} id
 * @param {Fill} fill
 */
async function showPicture(place, id, fill) {
  const blob = new Blob([await readSvg(id)], { type: "image/svg+xml" });
  const url = URL.createObjectURL(blob);
  const save = element("a", { download: `${id}.svg`, href: url }, `${id}.svg`);
  fill(() => {
    place.replaceChildren(element("p", {}, save), element("img", { alt: place.dataset.alt, src: url }));
    return () => URL.revokeObjectURL(url);
  });
}

/**
 * Returns the SVG of a figure with the outlines of its characters, which figures share.
 * @param {string} id
 */
async function readSvg(id) {
  const svg = await readText(`${id}.svg`);
  const glyphs = JSON.parse(await readText("glyphs"));
  const used = new Set(svg.match(/(?<=href="#)[^"]+/g));
  const missing = [...used].filter((name) => glyphs[name] && !svg.includes(`id="${name}"`));
  return svg.replace("</defs>", () => `${missing.map((name) => glyphs[name]).join("")}</defs>`);
}

/**
 * @param {HTMLElement} place
 * @param {string} id
 * @param {Fill} fill
 */
async function showTable(place, id, fill) {
  const text = await readText(`${id}.table`);
  const [head, ...rows] = readCsv(text);
  const isNumber = (/** @type {string} */ cell) => cell !== "" && Number.isFinite(Number(cell));
  const cells = rows.map((row) => row.map((cell) => (isNumber(cell) ? Number(cell) : cell)));
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const save = element("a", { download: `${id}.csv`, href: url }, `${id}.csv`);
  const table = tableOf({ head, rows: cells }, `${place.dataset.title}: table`);
  fill(() => {
    place.replaceChildren(element("p", {}, save), table);
    return () => URL.revokeObjectURL(url);
  });
}

/**
 * Returns the rows of a CSV text.
 * @param {string} text
 * @returns {string[][]}
 */
function readCsv(text) {
  /** @type {string[][]} */
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "\n") rows.push([]);
    if (end === "") break;
  }
  return rows.filter((row) => row.length > 1 || row[0] !== "");
}

/**
 * @param {HTMLElement} place
 * @param {string} id
 * @param {Fill} fill
 */
async function showScenarios(place, id, fill) {
  /** @type {{name: string, toml: string}[]} */
  const scenarios = JSON.parse(await readText(`${id}.scenarios`));
  const sections = scenarios.map(({ name, toml }) => {
    const head = element("div", { class: "row" }, element("b", {}, name));
    copyButton(head, () => toml);
    return element("section", {}, head, element("pre", { tabindex: 0 }, toml));
  });
  fill(() => place.replaceChildren(...sections));
}

// Filter -------------------------------------------------------------------------------------

const SIGNS = { held: "✓ held", "not held": "✗ not held", "not judged": "– not judged" };

/** Adds the filter by text and verdict, whose state is in the address. */
function addFilter() {
  const bar = find("#bar");
  const figures = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".figure")]);
  const sections = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-paper]")]);
  const texts = figures.map((figure) => textOfFigure(figure));
  const state = readAddress();
  const hidden = new Set((state.get("without") ?? "").split(",").filter(Boolean));
  const input = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", placeholder: "find a figure or a claim", "aria-label": "Find a figure or a claim",
    value: state.get("find") ?? "", oninput: () => apply(),
  }));
  const buttons = Object.entries(SIGNS).map(([verdict, sign]) => {
    const button = element("button", { class: verdict.replace(" ", "-"), onclick: () => {
      if (!hidden.delete(verdict)) hidden.add(verdict);
      apply();
    } }, sign);
    return { verdict, button };
  });
  const count = element("span", { class: "soft", role: "status" });
  bar.append(input, ...buttons.map(({ button }) => button), count);
  apply(false);
  return { reset };

  /** Shows everything. */
  function reset() {
    hidden.clear();
    input.value = "";
    apply();
  }

  function apply(isChange = true) {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    figures.forEach((figure, index) => {
      const claims = /** @type {HTMLElement[]} */ ([...figure.querySelectorAll("[data-verdict]")]);
      claims.forEach((claim) => (claim.hidden = hidden.has(claim.dataset.verdict ?? "")));
      const hasVerdict = hidden.size === 0 || claims.some((claim) => !claim.hidden);
      figure.hidden = !hasVerdict || !words.every((word) => texts[index].includes(word));
      find(`[data-figure="${CSS.escape(figure.id)}"]`).hidden = figure.hidden;
      shown += figure.hidden ? 0 : 1;
    });
    for (const section of sections) {
      const members = [...section.querySelectorAll(".figure, [data-figure]")];
      section.hidden = members.every((member) => /** @type {HTMLElement} */ (member).hidden);
    }
    for (const { verdict, button } of buttons) {
      button.setAttribute("aria-pressed", String(!hidden.has(verdict)));
    }
    count.textContent = `${shown} of ${figures.length} figures`;
    if (isChange) writeAddress({ find: input.value.trim(), without: [...hidden].join(",") });
  }
}

/**
 * Returns the text in which a figure is found: its paper, title and statements.
 * @param {HTMLElement} figure
 */
function textOfFigure(figure) {
  const paper = figure.parentElement?.querySelector("h2");
  const parts = [paper, ...figure.querySelectorAll("h3, header span, .statement")];
  return parts.map((part) => part?.textContent).join(" ").toLowerCase();
}

// Links --------------------------------------------------------------------------------------

/** Scrolls to the figure or claim in the address, and again when the figures above it are drawn. */
async function land() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.closest("[hidden]")) filter.reset();
  const figure = target.closest(".figure") ?? target;
  for (let round = 0; round < 3; round += 1) {
    target.scrollIntoView();
    const near = [...undrawn.keys()].filter((place) => Math.abs(place.getBoundingClientRect().top) < 2500);
    near.forEach(drawNow);
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  target.scrollIntoView();
  figure.classList.add("landed");
}

pageButtons(find(".buttons"), [["drag", "zoom in"]]);
for (const place of document.querySelectorAll(".copy")) {
  copyButton(/** @type {HTMLElement} */ (place), () => /** @type {HTMLElement} */ (place).dataset.text ?? "");
}
document.querySelectorAll(".shown").forEach((place) => addFigure(/** @type {HTMLElement} */ (place)));
const filter = addFilter();
addEventListener("hashchange", land);
land();
// All pictures are inflated after the first view, in time for printing, which does not wait.
setTimeout(async () => {
  for (const { id } of document.querySelectorAll(".figure")) {
    if (hasBlock(`${id}.drawn`)) await readPicture(id);
  }
}, 500);
addEventListener("beforeprint", () => {
  [...undrawn.keys()].forEach(drawNow);
  // The first panel of a figure was alone when it was drawn, and wider.
  layOut(true);
});
