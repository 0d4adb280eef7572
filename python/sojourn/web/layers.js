// Layers: functions that draw marks on the axes of a frame.

/** @typedef {{(pen: Pen): void, isUnclipped?: boolean}} Layer unclipped: may draw outside of the axes */

/** Drawing area of a frame, in pixels of the canvas. */
class Pen {
  /** @param {any} chart uPlot's */
  constructor(chart) {
    this.chart = chart;
    /** @type {CanvasRenderingContext2D} */
    this.context = chart.ctx;
    /** Pixels of the canvas per CSS pixel. */
    this.ratio = devicePixelRatio;
    this.left = chart.bbox.left;
    this.top = chart.bbox.top;
    this.width = chart.bbox.width;
    this.height = chart.bbox.height;
  }

  /** @param {number} value */
  x(value) {
    return this.chart.valToPos(value, "x", true);
  }

  /** @param {number} value */
  y(value) {
    return this.chart.valToPos(value, "y", true);
  }
}

/** @param {number} value @param {number} least @param {number} most */
const clamp = (value, least, most) => Math.min(Math.max(value, least), Math.max(most, least));

/** @param {[number, number]} range @param {number} value */
const contains = ([low, high], value) => value >= low && value <= high;

/** @typedef {{colour: string, width?: number, dash?: number[], alpha?: number}} Stroke */

/** @param {Pen} pen @param {Stroke} stroke */
function setStroke(pen, { colour: name, width = 1.5, dash = [], alpha = 1 }) {
  const { context, ratio } = pen;
  context.strokeStyle = context.fillStyle = colour(name);
  context.lineWidth = width * ratio;
  context.setLineDash(dash.map((length) => length * ratio));
  context.globalAlpha = alpha;
  context.lineJoin = "round";
}

/**
 * Returns a layer with a line. Where several points share a pixel, the least and the greatest are
 * drawn, so that a line of any length costs no more than its pixels. NaN interrupts it.
 * @param {Stroke & {x: Numbers, y: Numbers, step?: boolean}} line `step`: values hold until the next
 * @returns {Layer}
 */
function lineLayer({ x, y, step = false, ...stroke }) {
  return (pen) => {
    setStroke(pen, stroke);
    pen.context.beginPath();
    tracePath(pen, x, y, step);
    pen.context.stroke();
  };
}

/**
 * Returns a line whose last value holds until `end`.
 * @param {number | undefined} end
 * @param {Numbers} x
 * @param {Numbers} y
 * @returns {{x: Numbers, y: Numbers}}
 */
function heldUntil(end, x, y) {
  if (end === undefined || x.length === 0 || x[x.length - 1] >= end) return { x, y };
  return { x: [...Array.from(x), end], y: [...Array.from(y), y[y.length - 1]] };
}

/** @param {Pen} pen @param {Numbers} x @param {Numbers} y @param {boolean} step */
function tracePath(pen, x, y, step) {
  const { context } = pen;
  const isDense = x.length > 4 * pen.width;
  let isDrawing = false;
  let column = NaN;
  let [least, most, last] = [0, 0, 0];
  const flush = () => {
    if (!isDense || Number.isNaN(column)) return;
    context.lineTo(column, least);
    context.lineTo(column, most);
    context.lineTo(column, last);
  };
  for (let index = 0; index < x.length; index += 1) {
    let across = pen.x(x[index]);
    const up = pen.y(y[index]);
    if (!Number.isFinite(up) || !Number.isFinite(across)) {
      flush();
      [isDrawing, column] = [false, NaN];
      continue;
    }
    if (isDense) across = Math.round(across);
    if (!isDrawing) {
      context.moveTo(across, up);
      isDrawing = true;
    } else if (isDense && across === column) {
      [least, most, last] = [Math.min(least, up), Math.max(most, up), up];
      continue;
    } else {
      flush();
      if (step) context.lineTo(across, isDense ? last : pen.y(y[index - 1]));
      context.lineTo(across, up);
    }
    [column, least, most, last] = [across, up, up, up];
  }
  flush();
}

/**
 * Returns a layer with the area between two lines.
 * @param {{x: Numbers, low: Numbers, high: Numbers, colour: string, alpha?: number, step?: boolean}} band
 * @returns {Layer}
 */
function bandLayer({ x, low, high, colour: name, alpha = 0.18, step = false }) {
  return (pen) => {
    const { context } = pen;
    context.fillStyle = colour(name);
    context.globalAlpha = alpha;
    context.beginPath();
    for (let index = 0; index < x.length; index += 1) {
      if (step && index > 0) context.lineTo(pen.x(x[index]), pen.y(high[index - 1]));
      context.lineTo(pen.x(x[index]), pen.y(high[index]));
    }
    for (let index = x.length - 1; index >= 0; index -= 1) {
      context.lineTo(pen.x(x[index]), pen.y(low[index]));
      if (step && index > 0) context.lineTo(pen.x(x[index]), pen.y(low[index - 1]));
    }
    context.fill();
  };
}

/**
 * Returns a layer with a mark at each point. Shapes have Matplotlib's letters.
 * @param {Stroke & {x: Numbers, y: Numbers, shape?: string, size?: number, hollow?: boolean}} points
 *   `size`: radius in CSS pixels
 * @returns {Layer}
 */
function pointsLayer({ x, y, shape = "o", size = 3.5, hollow = false, ...stroke }) {
  return (pen) => {
    setStroke(pen, { width: 1.3, ...stroke });
    const { context, ratio } = pen;
    const isOpen = OPEN_SHAPES.includes(shape);
    if (THICK_SHAPES.includes(shape) && !hollow) context.lineWidth = THICK * ratio;
    for (let index = 0; index < x.length; index += 1) {
      const [across, up] = [pen.x(x[index]), pen.y(y[index])];
      if (!Number.isFinite(up) || !Number.isFinite(across)) continue;
      context.beginPath();
      traceMark(context, shape, across, up, size * ratio);
      if (!hollow && !isOpen) context.fill();
      else context.stroke();
    }
  };
}

/** Shapes of lines, which have no area. */
const OPEN_SHAPES = "xX+P_|";

/** Filled crosses, which are thick lines, and the width of these. */
const THICK_SHAPES = "XP";
const THICK = 2.4;

/** Corners of shapes: their number, and the angle of the first, in turns. */
const CORNERS = {
  s: [4, 1 / 8], D: [4, 0], d: [4, 0], "^": [3, -1 / 4], v: [3, 1 / 4], "<": [3, 1 / 2],
  ">": [3, 0], p: [5, -1 / 4], h: [6, -1 / 4],
};

/**
 * @param {Pick<CanvasRenderingContext2D, "moveTo" | "lineTo" | "arc" | "closePath">} context
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
function traceMark(context, shape, x, y, r) {
  const polygon = /** @type {Record<string, number[]>} */ (CORNERS)[shape];
  if (polygon || shape === "*") {
    const [corners, first] = polygon ?? [10, -1 / 4];
    const narrow = shape === "d" ? 0.65 : 1;
    for (let corner = 0; corner < corners; corner += 1) {
      const angle = 2 * Math.PI * (first + corner / corners);
      const radius = (polygon ? 1.2 : corner % 2 ? 0.55 : 1.4) * r;
      context.lineTo(x + radius * narrow * Math.cos(angle), y + radius * Math.sin(angle));
    }
    context.closePath();
  } else if ("xX".includes(shape)) {
    context.moveTo(x - r, y - r); context.lineTo(x + r, y + r);
    context.moveTo(x + r, y - r); context.lineTo(x - r, y + r);
  } else if ("+P_|".includes(shape)) {
    if (shape !== "|") { context.moveTo(x - r, y); context.lineTo(x + r, y); }
    if (shape !== "_") { context.moveTo(x, y - r); context.lineTo(x, y + r); }
  } else {
    context.arc(x, y, shape === "." ? r * 0.6 : r, 0, 2 * Math.PI);
  }
}

/**
 * Returns a layer with rectangles, by their corners in values of the axes.
 * @param {{left: Numbers, right: Numbers, bottom: Numbers, top: Numbers, colour: string,
 *   alpha?: number, hollow?: boolean, hatched?: boolean, least?: number}} boxes
 *   `least`: smallest sides in CSS pixels
 * @returns {Layer}
 */
function boxesLayer({ left, right, bottom, top, colour: name, least = 0, ...style }) {
  const { alpha = 1, hollow = false, hatched = false } = style;
  return (pen) => {
    const { context, ratio } = pen;
    setStroke(pen, { colour: name, alpha, width: 1.2, dash: hollow ? [4, 3] : [] });
    if (hatched) context.fillStyle = hatching(context, colour(name), ratio);
    for (let index = 0; index < left.length; index += 1) {
      const [x, y] = [pen.x(left[index]), clamp(pen.y(top[index]), -1e5, 1e5)];
      // A bar from zero begins below a log axis.
      const foot = pen.y(bottom[index]);
      const base = Number.isFinite(foot) ? foot : pen.top + pen.height;
      const width = atLeast(pen.x(right[index]) - x, least * ratio);
      const height = atLeast(clamp(base, -1e5, 1e5) - y, least * ratio);
      if (hollow) context.strokeRect(x, y, width, height);
      else context.fillRect(x, y, width, height);
    }
  };
}

/** @param {number} length @param {number} least @returns {number} the length; if it is shorter, `least` */
const atLeast = (length, least) => (Math.abs(length) >= least ? length : least);

/** @param {CanvasRenderingContext2D} context @param {string} ink @param {number} ratio */
function hatching(context, ink, ratio) {
  const size = Math.round(6 * ratio);
  const tile = new OffscreenCanvas(size, size);
  const brush = /** @type {OffscreenCanvasRenderingContext2D} */ (tile.getContext("2d"));
  brush.fillStyle = ink;
  brush.fillRect(0, 0, size, size);
  brush.strokeStyle = css("--card");
  brush.lineWidth = ratio;
  brush.beginPath();
  for (const shift of [-size, 0, size]) {
    brush.moveTo(shift, size);
    brush.lineTo(shift + size, 0);
  }
  brush.stroke();
  return /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
}

/**
 * Returns a layer with intervals from `low` to `high`, across if `isAcross`.
 * @param {Stroke & {at: Numbers, low: Numbers, high: Numbers, isAcross?: boolean}} intervals
 * @returns {Layer}
 */
function intervalsLayer({ at, low, high, isAcross = false, ...stroke }) {
  return (pen) => {
    setStroke(pen, { width: 1, ...stroke });
    const { context, ratio } = pen;
    context.beginPath();
    for (let index = 0; index < at.length; index += 1) {
      const centre = isAcross ? pen.y(at[index]) : pen.x(at[index]);
      const ends = [low[index], high[index]].map((value) => isAcross ? pen.x(value) : pen.y(value));
      if (![centre, ...ends].every(Number.isFinite)) continue;
      const line = (/** @type {number[]} */ ...places) => {
        const [one, two, three, four] = places;
        context.moveTo(isAcross ? two : one, isAcross ? one : two);
        context.lineTo(isAcross ? four : three, isAcross ? three : four);
      };
      line(centre, ends[0], centre, ends[1]);
      for (const end of ends) line(centre - 3 * ratio, end, centre + 3 * ratio, end);
    }
    context.stroke();
  };
}

/**
 * Returns a layer with a line across the plot at `y`, or up at `x`.
 * @param {Stroke & {x?: number, y?: number}} rule
 * @returns {Layer}
 */
function ruleLayer({ x, y, ...stroke }) {
  return (pen) => {
    setStroke(pen, { width: 1, ...stroke });
    const { context } = pen;
    context.beginPath();
    if (y !== undefined) {
      context.moveTo(pen.left, pen.y(y));
      context.lineTo(pen.left + pen.width, pen.y(y));
    }
    if (x !== undefined) {
      context.moveTo(pen.x(x), pen.top);
      context.lineTo(pen.x(x), pen.top + pen.height);
    }
    context.stroke();
  };
}

/**
 * Returns a layer with a text at a point, with a background of the card's colour. The text may
 * extend beyond the plot, but not its point.
 * @param {{x: number, y: number, text: string, colour?: string, align?: CanvasTextAlign,
 *   baseline?: CanvasTextBaseline, shift?: [number, number], rotation?: number}} text
 *   `shift` in CSS pixels, `rotation` in degrees to the left
 * @returns {Layer}
 */
function textLayer({ x, y, text, colour: name = "--ink", ...place }) {
  const { align = "left", baseline = "middle", shift = [0, 0], rotation = 0 } = place;
  /** @type {Layer} */
  const layer = (pen) => {
    const { context, ratio } = pen;
    const [left, top] = [pen.x(x), pen.y(y)];
    if (!contains([pen.left - 1, pen.left + pen.width + 1], left)) return;
    if (!contains([pen.top - 1, pen.top + pen.height + 1], top)) return;
    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.textAlign = align;
    context.textBaseline = baseline;
    context.lineWidth = 3 * ratio;
    context.lineJoin = "round";
    context.strokeStyle = css("--card");
    context.fillStyle = colour(name);
    context.translate(left + shift[0] * ratio, top + shift[1] * ratio);
    context.rotate((-rotation * Math.PI) / 180);
    text.split("\n").forEach((line, index) => {
      context.strokeText(line, 0, 13 * index * ratio);
      context.fillText(line, 0, 13 * index * ratio);
    });
  };
  layer.isUnclipped = true;
  return layer;
}

/** @param {Pen} pen @param {Box} box */
function drawBox(pen, { x, y }) {
  const { context } = pen;
  const [left, right] = x ? x.map((value) => pen.x(value)) : [pen.left, pen.left + pen.width];
  const [bottom, top] = y ? y.map((value) => pen.y(value)) : [pen.top + pen.height, pen.top];
  setStroke(pen, { colour: "--link", width: 1.5 });
  context.globalAlpha = 0.12;
  context.fillRect(left, top, right - left, bottom - top);
  context.globalAlpha = 1;
  context.strokeRect(left, top, right - left, bottom - top);
}
