// Axes: scales, ticks and their widths.

/**
 * @typedef {object} Axis
 * @property {string} name what it measures, with its unit
 * @property {"linear" | "log" | "symlog"} [scale]
 * @property {number} [threshold] of `symlog`, below which it is nearly linear; 1 if missing
 * @property {[number, number]} range interval that is shown first, and again by `showAll`
 * @property {(value: number) => string} [format] of its ticks
 * @property {{at: number, text: string}[]} [ticks] in place of numbers
 */

/** @param {Axis} axis */
const lineCount = (axis) => Math.max(1, ...(axis.ticks ?? []).map((tick) => tick.text.split("\n").length));

/** @param {Axis} axis @param {number} value of a tick @returns {string} */
const tickText = (axis, value) =>
  axis.ticks?.find((tick) => tick.at === value)?.text ?? axis.format?.(value) ?? number(value);

/**
 * Returns the function from values to even steps of an axis, and its inverse.
 * @param {Axis} axis
 * @returns {[(value: number) => number, (step: number) => number]}
 */
function scaleOf(axis) {
  if (axis.scale === "log") return [Math.log10, (step) => 10 ** step];
  if (axis.scale === "symlog") {
    const threshold = axis.threshold ?? 1;
    return [(value) => Math.asinh(value / threshold), (step) => threshold * Math.sinh(step)];
  }
  return [(value) => value, (step) => step];
}

/**
 * Returns the ticks of an axis that is not linear, or whose ticks have names.
 * @param {Axis} axis
 * @param {[number, number]} range
 * @param {number} room
 */
function ticksIn(axis, range, room) {
  if (axis.ticks) return axis.ticks.map((tick) => tick.at).filter((at) => contains(range, at));
  if (axis.scale === "log") return logTicks(...range, room);
  // Values of a symlog axis are zero or positive.
  const positive = logTicks(axis.threshold ?? 1, Math.max(range[1], axis.threshold ?? 1), room - 1);
  return [0, ...positive].filter((at) => contains(range, at));
}

/**
 * Returns ticks at 1, 2 and 5 times powers of ten, at most `room`; a short range has even ticks.
 * @param {number} low
 * @param {number} high
 * @param {number} room
 */
function logTicks(low, high, room) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = first; power <= last; power += 1) {
      for (const factor of factors) ticks.push(Number(`${factor}e${power}`));
    }
    const inside = ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
    if (inside.length < 2 && factors.length === 3) break;
    if (inside.length <= room) return inside;
    if (factors.length === 1) {
      const every = Math.ceil(inside.length / room);
      return inside.filter((_, index) => index % every === 0);
    }
  }
  const rough = (high - low) / Math.max(room, 2);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5, 10].find((factor) => factor * unit >= rough) ?? 10);
  const count = Math.floor(high / step) - Math.ceil(low / step) + 1;
  return Array.from({ length: count }, (_, index) => (Math.ceil(low / step) + index) * step);
}

/** Height of a line of ticks and least distance of ticks beside each other, in CSS pixels. */
const LINE = 14;
const GAP = 8;
/** Angle of names that have no room beside each other, in degrees, and the most room below for them. */
const ANGLE = 50;
const MOST_SIZE = 150;

/**
 * Returns the width of the widest line of a text in CSS pixels.
 * @param {any} chart
 * @param {string} text
 */
function textWidth(chart, text) {
  chart.ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  const widths = text.split("\n").map((line) => chart.ctx.measureText(line).width);
  return Math.max(0, ...widths) / devicePixelRatio;
}

/**
 * Returns the width of a vertical axis with these ticks.
 * @param {any} chart
 * @param {string[] | null} values
 */
function widthOf(chart, values) {
  if (!values) return 30;
  return Math.ceil(Math.max(0, ...values.map((text) => textWidth(chart, text)))) + 10;
}

/**
 * Returns the height of a horizontal axis with these ticks, which may be slanted.
 * @param {any} chart
 * @param {string[] | null} values
 * @param {Axis} axis
 * @param {boolean} isSlanted
 */
function heightOf(chart, values, axis, isSlanted) {
  const level = 12 + LINE * lineCount(axis);
  if (!values || !isSlanted) return level;
  const widest = Math.max(0, ...values.map((text) => textWidth(chart, text)));
  return Math.min(Math.ceil(level + widest * Math.sin((ANGLE * Math.PI) / 180)), MOST_SIZE);
}

/**
 * Returns the ticks whose texts do not overlap, from the first one on.
 * @param {any} chart
 * @param {"x" | "y"} side
 * @param {Axis} axis with the range that is shown
 * @param {number[]} ticks
 * @param {boolean} isLevel true: texts lie beside each other
 */
function ticksApart(chart, side, axis, ticks, isLevel) {
  const [forward] = scaleOf(axis);
  const [low, high] = axis.range.map(forward);
  const length = chart.bbox[side === "x" ? "width" : "height"] / devicePixelRatio;
  if (!(length > 0)) return ticks;
  const placeOf = (/** @type {number} */ tick) => ((forward(tick) - low) / (high - low)) * length;
  const sizeOf = (/** @type {number} */ tick) => {
    const text = tickText(axis, tick);
    return isLevel ? textWidth(chart, text) + GAP : LINE * text.split("\n").length;
  };
  /** @type {number[]} */
  const kept = [];
  for (const tick of ticks) {
    const last = kept[kept.length - 1];
    const distance = Math.abs(placeOf(tick) - placeOf(last));
    if (!kept.length || distance >= (sizeOf(tick) + sizeOf(last)) / 2) kept.push(tick);
  }
  return kept;
}
