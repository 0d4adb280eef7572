// Figures: pictures of `drawn.py` as frames, with one legend.

/** @typedef {Record<string, any>} Mark a mark of `drawn.py` */
/** @typedef {{title: string, row: number, column: number, x: any, y: any, marks: Mark[]}} Panel */

const PUBLISHED = "published (hollow)";

/**
 * Draws a figure: a legend, and a frame for each panel.
 * @param {HTMLElement} parent is emptied
 * @param {{panels: Panel[]}} drawn
 * @param {string} title
 * @param {number} height of a panel
 * @returns {() => void} removes the figure
 */
function drawFigure(parent, { panels }, title, height) {
  /** @type {Frame[]} */
  let frames = [];
  /** @type {boolean | null} scale that the reader chose; null: as drawn */
  let isLog = null;
  const grid = element("div", { class: "panels" });
  const entries = entriesOf(panels);
  parent.replaceChildren(grid);
  const foot = element("div", { class: "row" });
  const hidden = legend(foot, entries, () => frames.forEach((frame) => frame.draw()));
  if (panels.some(canSwitchScale)) foot.append(scaleButton());
  const clouds = panels.flatMap((panel) => panel.marks).filter((mark) => mark.all && mark.all > mark.x.length);
  const [drawn, all] = [clouds.map((mark) => mark.x.length), clouds.map((mark) => mark.all)].map(sum);
  if (all) foot.append(element("span", { class: "soft" }, `${number(drawn)} of ${number(all)} points drawn`));
  parent.append(foot);
  drawPanels();
  return () => frames.forEach((frame) => frame.remove());

  function drawPanels() {
    frames.forEach((frame) => frame.remove());
    grid.replaceChildren();
    frames = panels.map((panel) => {
      const cell = element("div", { class: "panel" });
      cell.style.gridArea = `${panel.row + 1} / ${panel.column + 1}`;
      const hasTitles = panels.some((other) => other.title);
      if (hasTitles) cell.append(element("div", { class: "name" }, panel.title || "\u00a0"));
      grid.append(cell);
      return panelFrame(cell, panel, title, height, hidden, isLog);
    });
  }

  function scaleButton() {
    const wasLog = panels.find(canSwitchScale)?.y.scale === "log";
    const button = element("button", { class: "plain", onclick: () => {
      isLog = !(isLog ?? wasLog);
      button.textContent = isLog ? "linear axis" : "log axis";
      drawPanels();
    } }, wasLog ? "linear axis" : "log axis");
    return button;
  }
}

/**
 * Returns the entries of the legend: the schemes in order, and the published marks.
 * @param {Panel[]} panels
 * @returns {(Entry & {drawing?: SVGElement})[]}
 */
function entriesOf(panels) {
  /** @type {Map<string, Entry & {drawing?: SVGElement}>} */
  const entries = new Map();
  /** @type {Set<string>} */
  const lines = new Set();
  const marks = panels.flatMap((panel) => panel.marks);
  for (const mark of marks) {
    if (!mark.name || mark.published) continue;
    const isLine = (mark.kind === "line" && mark.width > 0) || mark.kind === "rule";
    // A line replaces its band, which lies behind it.
    if (entries.has(mark.name) && (!isLine || lines.has(mark.name))) continue;
    if (isLine) lines.add(mark.name);
    const drawing = isLine || mark.shape ? curveSwatch(mark) : undefined;
    entries.set(mark.name, { name: mark.name, colour: mark.colour, drawing });
  }
  if (marks.some((mark) => mark.published)) {
    entries.set(PUBLISHED, { name: PUBLISHED, colour: "--soft", swatch: "hollow" });
  }
  return [...entries.values()];
}

const SWATCH_WIDTH = 36;
const SWATCH_HEIGHT = 12;

/**
 * Returns the swatch of a line: its dashes and its marker, as drawn.
 * @param {Mark} mark
 * @returns {SVGElement}
 */
function curveSwatch({ width, dash, shape, size, hollow }) {
  const [middleX, middleY] = [SWATCH_WIDTH / 2, SWATCH_HEIGHT / 2];
  const drawing = svg("svg", {
    class: "swatch curve", viewBox: `0 0 ${SWATCH_WIDTH} ${SWATCH_HEIGHT}`,
    width: SWATCH_WIDTH, height: SWATCH_HEIGHT, "aria-hidden": "true",
  });
  if (width > 0) {
    drawing.append(svg("path", {
      d: `M0 ${middleY}H${SWATCH_WIDTH}`, "stroke-width": width, "stroke-dasharray": dash.join(" "),
    }));
  }
  if (shape) {
    const outline = new PathText();
    traceMark(outline, shape, middleX, middleY, Math.min(size, SWATCH_HEIGHT / 2 - 1));
    const isFilled = !hollow && !OPEN_SHAPES.includes(shape);
    drawing.append(svg("path", {
      class: isFilled ? "filled" : "", d: outline.text,
      "stroke-width": THICK_SHAPES.includes(shape) && !hollow ? THICK : 1.4,
    }));
  }
  return drawing;
}

/** Path of a drawing, by the calls of a canvas. */
class PathText {
  text = "";

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.text += `M${x} ${y}`;
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.text += `${this.text ? "L" : "M"}${x} ${y}`;
  }

  /** Adds a whole circle. @param {number} x @param {number} y @param {number} r */
  arc(x, y, r) {
    this.text += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  }

  closePath() {
    this.text += "Z";
  }
}

/**
 * Returns true if the vertical axis of a panel may be linear or logarithmic. Parts of stacked bars
 * do not add up on a logarithmic axis.
 * @param {Panel} panel
 */
function canSwitchScale(panel) {
  if (panel.y.ticks || !["linear", "log"].includes(panel.y.scale)) return false;
  const values = panel.marks.flatMap(numbersOf);
  const feet = panel.marks.flatMap((mark) => (mark.kind === "boxes" ? mark.bottom : []));
  return values.some((value) => value > 0) && !values.some((value) => value < 0)
    && !feet.some((foot) => foot > 0);
}

/**
 * Returns the vertical positions of a mark's points.
 * @param {Mark} mark
 * @returns {number[]}
 */
const numbersOf = (mark) => mark.kind === "line" ? mark.y : mark.kind === "boxes" ? mark.top : [];

/** @param {Panel} panel */
const leastPositive = (panel) => Math.min(...panel.marks.flatMap(numbersOf).filter((value) => value > 0));

/**
 * Returns the vertical axis in another scale: logarithmic from the least value, linear from zero.
 * @param {Panel} panel
 * @param {boolean | null} isLog
 * @returns {Axis}
 */
function verticalAxis(panel, isLog) {
  if (isLog === null || isLog === (panel.y.scale === "log") || !canSwitchScale(panel)) return panel.y;
  const low = isLog ? leastPositive(panel) * 0.8 : 0;
  return { ...panel.y, scale: isLog ? "log" : "linear", range: [low, panel.y.range[1]] };
}

/**
 * Returns an axis with sizes as 10 KB, not 10 000.
 * @param {Axis} axis
 * @returns {Axis}
 */
const withFormat = (axis) => axis.name.endsWith("(bytes)") ? { ...axis, format: bytes } : axis;

/**
 * @param {HTMLElement} cell
 * @param {Panel} panel
 * @param {string} title
 * @param {number} height
 * @param {Set<string>} hidden names that are switched off
 * @param {boolean | null} isLog
 */
function panelFrame(cell, panel, title, height, hidden, isLog) {
  /** @param {Mark} mark */
  const isShown = (mark) => !hidden.has(mark.name) && !(mark.published && hidden.has(PUBLISHED));
  const x = withFormat(panel.x);
  const y = withFormat(verticalAxis(panel, isLog));
  const layers = panel.marks.map((mark) => ({ mark, layer: layerOf(mark) }));
  const name = [title, panel.title].filter(Boolean).join(", ");
  return new Frame(cell, {
    label: `${name}: ${y.name || "value"} against ${x.name || "category"}`,
    x, y, height,
    layers: () => layers.filter(({ mark }) => isShown(mark)).map(({ layer }) => layer),
    marks: marksOf(panel, isShown),
  });
}

/**
 * Returns the layer of a mark.
 * @param {any} mark
 * @returns {Layer}
 */
function layerOf(mark) {
  if (mark.kind === "line") {
    const line = mark.width > 0 ? lineLayer(withNaN(mark)) : null;
    const points = mark.shape ? pointsLayer(withNaN({ ...mark, width: 1.4, dash: [] })) : null;
    return (pen) => {
      line?.(pen);
      pen.context.setLineDash([]);
      points?.(pen);
    };
  }
  if (mark.kind === "band") return bandLayer(mark);
  if (mark.kind === "boxes") return boxesLayer(mark);
  if (mark.kind === "intervals") return intervalsLayer(mark);
  if (mark.kind === "rule") return ruleLayer(mark);
  return textLayer(mark);
}

/**
 * Returns a line with NaN in place of `null`, which would count as zero.
 * @param {any} mark
 */
const withNaN = (mark) => ({ ...mark, y: mark.y.map((/** @type {number | null} */ value) => value ?? NaN) });

/**
 * Returns the points and boxes of a panel for pointer and keys.
 * @param {Panel} panel
 * @param {(mark: Mark) => boolean} isShown
 * @returns {Marks}
 */
function marksOf(panel, isShown) {
  /** @type {{mark: Mark, index: number, x: number, y: number}[]} */
  const points = [];
  for (const mark of panel.marks) {
    if (mark.kind === "line") {
      mark.x.forEach((/** @type {number} */ x, /** @type {number} */ index) => {
        if (x !== null && mark.y[index] !== null) points.push({ mark, index, x, y: mark.y[index] });
      });
    } else if (mark.kind === "boxes" && (mark.name || panel.x.ticks)) {
      mark.left.forEach((/** @type {number} */ left, /** @type {number} */ index) => {
        const x = middle(left, mark.right[index], panel.x.scale);
        points.push({ mark, index, x, y: middle(mark.bottom[index], mark.top[index], panel.y.scale) });
      });
    }
  }
  return {
    x: points.map((point) => point.x),
    y: points.map((point) => point.y),
    group: points.map(({ mark }) => groupOf(mark)),
    isShown: (index) => isShown(points[index].mark),
    text: (index) => textOf(panel, points[index]),
    covering: (x, y) => points.findIndex(({ mark, index }) => mark.kind === "boxes" && isShown(mark)
      && contains([mark.left[index], mark.right[index]], x)
      && contains([mark.bottom[index], mark.top[index]], y)),
  };
}

/** @param {Mark} mark */
const groupOf = (mark) => (mark.published ? `${mark.name}, published`.replace(/^, /, "") : mark.name);

/** @param {number[]} values */
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** @param {number} low @param {number} high @param {string} scale */
const middle = (low, high, scale) => scale === "log" && low > 0 ? Math.sqrt(low * high) : (low + high) / 2;

/**
 * Returns the text of a point: its scheme, place, value and interval.
 * @param {Panel} panel
 * @param {{mark: Mark, index: number, x: number, y: number}} point
 */
function textOf(panel, { mark, index, x, y }) {
  const value = mark.kind === "boxes" ? mark.top[index] - mark.bottom[index] : y;
  const interval = intervalOf(panel, mark, x, mark.kind === "boxes" ? mark.top[index] : y);
  const range = interval ? ` (${number(interval[0])} to ${number(interval[1])})` : "";
  const isBin = mark.kind === "boxes" && panel.x.scale === "log";
  return [
    groupOf(mark),
    isBin ? placeOn(panel.x, mark.left[index], mark.right[index]) : placeOn(panel.x, x),
    placeOn(panel.y, value) + range,
  ].filter(Boolean).join("\n");
}

/**
 * Returns a position on an axis: the name of its tick, or the axis' name with the number.
 * @param {any} axis
 * @param {number} value
 * @param {number} [end] of an interval that begins with the value
 */
function placeOn(axis, value, end) {
  const tick = axis.ticks?.find((/** @type {{at: number}} */ { at }) => Math.abs(at - value) < 0.5);
  const isNamed = tick && Number.isNaN(Number(tick.text));
  if (isNamed) return tick.text.replaceAll("\n", " ");
  const format = withFormat(axis).format ?? ((/** @type {number} */ each) => number(each));
  const text = (end === undefined ? [value] : [value, end]).map(format).join(" to ");
  return axis.name ? `${axis.name}: ${text}` : text;
}

/**
 * Returns the interval of a point: of a band or of error bars with its scheme, at its place.
 * @param {Panel} panel
 * @param {Mark} mark
 * @param {number} x
 * @param {number} y
 * @returns {[number, number] | null}
 */
function intervalOf(panel, mark, x, y) {
  if (mark.published) return null;
  for (const other of panel.marks) {
    const isUp = other.kind === "intervals" && !other.isAcross;
    const places = other.kind === "band" ? other.x : isUp ? other.at : null;
    if (!places || (other.name && other.name !== mark.name)) continue;
    const at = places.findIndex((/** @type {number} */ place, /** @type {number} */ index) =>
      Math.abs(place - x) <= 1e-5 * Math.abs(x) && contains([other.low[index], other.high[index]], y));
    if (at >= 0) return [other.low[at], other.high[at]];
  }
  return null;
}
