// Frame: a plot on uPlot's axes, with keys, zoom, selection, tips and a table.
//
// uPlot draws axes and follows the pointer. All marks are layers: functions that draw on its canvas.

/**
 * Points that the pointer and the arrow keys find.
 * @typedef {object} Marks
 * @property {Numbers} x
 * @property {Numbers} y
 * @property {(index: number) => string} text
 * @property {ArrayLike<string | number>} [group] up and down go to the next group; without groups, by value
 * @property {(index: number) => boolean} [isShown]
 * @property {(x: number, y: number) => number} [covering] the mark that covers a place, or −1
 */

/** @typedef {{x?: [number, number], y?: [number, number]}} Box */

/**
 * @typedef {object} FrameOptions
 * @property {string} label for screen readers: what is plotted against what
 * @property {Axis} x
 * @property {Axis} y
 * @property {number} height in pixels
 * @property {() => Layer[]} layers from the back to the front
 * @property {Marks} [marks]
 * @property {number} [left] width of the left axis, equal for frames above each other
 * @property {string} [together] frames with the same word have one horizontal range and cursor
 * @property {"x" | "xy"} [direction] of zoom and selection
 * @property {(box: Box | null) => void} [select] receives a dragged box; without it, dragging zooms
 * @property {(index: number) => void} [open] receives the mark of a click, or of Enter
 * @property {(box: Box) => void} [moved] is called after each change of the range
 * @property {(() => Cells) | "marks"} [table] `marks`: the marks that are shown, from left to right
 * @property {Record<string, () => void>} [keys] further keys
 * @property {boolean} [hasAxisBelow] false: without ticks and name of the horizontal axis
 */

/** Least length of a drag, and greatest distance of a mark from the pointer, in CSS pixels. */
const SMALLEST_DRAG = 4;
const REACH = 24;
/** Most rows of a table of marks. */
const MOST_MARKS = 200;
/** Numbers of scales in uPlot. */
const DISTRIBUTIONS = { linear: 1, log: 3, symlog: 4 };
/** @type {Map<string, Set<Frame>>} */
const frameGroups = new Map();
/** @type {Set<Frame>} all frames of the page */
const allFrames = new Set();
/** @type {Frame | null} the frame whose tip is shown */
let tipOwner = null;

class Frame {
  /**
   * @param {HTMLElement} parent
   * @param {FrameOptions} options
   */
  constructor(parent, options) {
    this.options = options;
    this.range = { x: options.x.range, y: options.y.range };
    /** @type {Box | null} the selected box, which is drawn */
    this.selected = null;
    /** The mark of the tip; −1 if there is none. */
    this.current = -1;
    /** @type {Record<string, Uint32Array>} marks in order, made when a key needs them */
    this.orders = {};
    this.wasDragged = false;

    this.plot = element("div", {
      class: "plot", tabindex: 0, role: "application", "aria-label": options.label,
    });
    this.ring = element("div", { class: "ring", hidden: true });
    const up = element("div", { class: "up" }, options.y.name);
    this.root = element("figure", { class: "frame" }, up, this.plot);
    if (options.hasAxisBelow !== false) {
      this.root.append(element("div", { class: "across" }, options.x.name));
    }
    parent.append(this.root);
    this.chart = new uPlot(this.#chartOptions(), [[0, 1], [0, 1]], this.plot);
    this.chart.over.append(this.ring);
    const { table } = options;
    if (table) {
      tableButton(up, this.root, options.label, table === "marks" ? () => this.#markCells() : table);
    }
    this.#listen();

    if (options.together) {
      const group = frameGroups.get(options.together) ?? new Set();
      frameGroups.set(options.together, group.add(this));
    }
    this.observer = new ResizeObserver(() => this.resize());
    allFrames.add(this);
    this.observer.observe(this.plot);
    this.draw = this.draw.bind(this);
    themeListeners.add(this.draw);
  }

  /** Draws the frame again, for example after a change of its layers. */
  draw() {
    this.chart.redraw(false, true);
  }

  /** Removes the frame from the page. */
  remove() {
    this.observer.disconnect();
    allFrames.delete(this);
    themeListeners.delete(this.draw);
    frameGroups.get(this.options.together ?? "")?.delete(this);
    this.hideTip();
    this.chart.destroy();
    this.root.remove();
  }

  /**
   * Replaces the marks; the frame is not drawn again.
   * @param {Marks} marks
   */
  setMarks(marks) {
    this.options.marks = marks;
    this.orders = {};
    this.current = -1;
    this.hideTip();
  }

  /**
   * Shows an interval of an axis or both.
   * @param {Box} box
   */
  show(box) {
    const frames = box.x && frameGroups.get(this.options.together ?? "");
    this.#setRange(box);
    for (const other of frames || []) if (other !== this) other.#setRange({ x: box.x });
    this.options.moved?.({ ...this.range });
  }

  /** Shows everything. */
  showAll() {
    this.show({ x: this.options.x.range, y: this.options.y.range });
  }

  /**
   * Zooms by a factor below 1 (in) or above (out), around a position in shares of the plot.
   * @param {number} factor
   * @param {number} [across]
   * @param {number} [up]
   */
  zoom(factor, across = 0.5, up = 0.5) {
    /** @type {Box} */
    const box = { x: this.#stretched("x", factor, across) };
    if (this.options.direction !== "x") box.y = this.#stretched("y", factor, up);
    this.show(box);
  }

  /**
   * Moves the range by shares of its length.
   * @param {number} across
   * @param {number} up
   */
  move(across, up) {
    /** @type {Box} */
    const box = { x: this.#shifted("x", across) };
    if (this.options.direction !== "x") box.y = this.#shifted("y", up);
    this.show(box);
  }

  /**
   * Selects a box, or drops the selection.
   * @param {Box | null} box
   */
  select(box) {
    this.selected = box;
    this.draw();
    this.options.select?.(box);
  }

  /**
   * Shows the tip of a mark, and moves the range if it is outside.
   * @param {number} index
   * @param {boolean} [isSpoken] true: the text is announced
   */
  showMark(index, isSpoken = false) {
    const marks = this.options.marks;
    if (!marks || index < 0) return;
    this.current = index;
    const [x, y] = [marks.x[index], marks.y[index]];
    if (!contains(this.range.x, x) || (!contains(this.range.y, y) && Number.isFinite(y))) {
      this.show({ x: this.#centred("x", x), y: this.#centred("y", y) });
    }
    const left = this.chart.valToPos(x, "x");
    const top = this.chart.valToPos(y, "y");
    this.ring.hidden = false;
    this.ring.style.left = `${left}px`;
    this.ring.style.top = `${top}px`;
    const text = marks.text(index);
    const area = this.chart.over.getBoundingClientRect();
    showTip(text, area.left + left, area.top + top);
    tipOwner = this;
    if (isSpoken) announce(text.replaceAll("\n", ", "));
  }

  /** Hides the tip. */
  hideTip() {
    this.ring.hidden = true;
    if (tipOwner === this) find("#tip").hidden = true;
  }

  /** @returns {uPlot.Options} */
  #chartOptions() {
    const { x, y, height, left, direction, together, hasAxisBelow } = this.options;
    const stroke = () => css("--soft");
    const lines = { stroke: () => css("--grid"), width: 1 };
    const font = "12px system-ui, sans-serif";
    /** @param {"x" | "y"} side @param {Axis} axis */
    const ticksOf = (side, axis) => ({
      stroke, font, grid: lines, ticks: { show: false }, gap: 4,
      ...(axis.ticks || (axis.scale ?? "linear") !== "linear"
        ? {
          splits: (/** @type {any} */ chart) => this.#ticksThatFit(chart, side),
          filter: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits,
        }
        : {}),
      values: (/** @type {any} */ _, /** @type {number[]} */ splits) =>
        splits.map((value) => tickText(axis, value)),
    });
    /** @param {"x" | "y"} side @param {Axis} axis */
    const scaleOn = (side, { scale = "linear", threshold = 1 }) => ({
      time: false, distr: DISTRIBUTIONS[scale], asinh: threshold, range: () => this.range[side],
    });
    const cursorOnly = (/** @type {string} */ event) => event === "mousemove" || event === "mouseleave";
    const filters = { pub: cursorOnly, sub: cursorOnly };
    return {
      width: Math.max(this.plot.clientWidth, 50), height,
      legend: { show: false },
      padding: [12, 24, hasAxisBelow === false ? 4 : 0, 0],
      scales: { x: scaleOn("x", x), y: scaleOn("y", y) },
      axes: [
        hasAxisBelow === false
          ? { ...ticksOf("x", x), size: 0, values: () => [] }
          : {
            ...ticksOf("x", x),
            size: (/** @type {any} */ chart, /** @type {string[] | null} */ values) =>
              heightOf(chart, values, x, this.#isSlanted(chart)),
            rotate: (/** @type {any} */ chart) => (this.#isSlanted(chart) ? ANGLE : 0),
          },
        { ...ticksOf("y", y), size: left ?? widthOf },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      cursor: {
        x: true, y: false, points: { show: false },
        drag: { x: true, y: direction !== "x", uni: 12, setScale: false, dist: SMALLEST_DRAG },
        bind: { dblclick: () => () => { this.showAll(); return null; } },
        ...(together ? { sync: { key: together, scales: ["x", null], filters } } : {}),
      },
      hooks: {
        draw: [(/** @type {any} */ chart) => this.#drawLayers(chart)],
        setSelect: [() => this.#dragged()],
      },
    };
  }

  /** @param {any} chart uPlot's, which draws before its constructor has returned */
  #drawLayers(chart) {
    const pen = new Pen(chart);
    const { context } = pen;
    const layers = [...this.options.layers()];
    const selection = this.selected;
    if (selection) layers.push(() => drawBox(pen, selection));
    for (const layer of layers) {
      context.save();
      if (!layer.isUnclipped) {
        context.beginPath();
        context.rect(pen.left, pen.top, pen.width, pen.height);
        context.clip();
      }
      layer(pen);
      context.restore();
    }
  }

  /**
   * Returns the ticks of an axis whose texts do not overlap.
   * @param {any} chart uPlot's, which draws before its constructor has returned
   * @param {"x" | "y"} side
   */
  #ticksThatFit(chart, side) {
    const axis = this.options[side];
    const ticks = ticksIn(axis, this.range[side], this.#room(side));
    const isLevel = side === "x" && !this.#isSlanted(chart);
    return ticksApart(chart, side, { ...axis, range: this.range[side] }, ticks, isLevel);
  }

  /**
   * Returns true if the names of the horizontal axis have no room beside each other.
   * @param {any} chart
   */
  #isSlanted(chart) {
    const axis = { ...this.options.x, range: this.range.x };
    const ticks = axis.ticks ? ticksIn(axis, axis.range, Infinity) : [];
    return ticksApart(chart, "x", axis, ticks, true).length < ticks.length;
  }

  #dragged() {
    const { left, top, width, height } = this.chart.select;
    if (width < SMALLEST_DRAG && height < SMALLEST_DRAG) return;
    /** @type {Box} */
    const box = { x: this.#interval("x", left, width) };
    const hasAllHeight = this.options.direction === "x" || height >= this.chart.over.clientHeight;
    if (!hasAllHeight) box.y = this.#interval("y", top + height, -height);
    if (width >= this.chart.over.clientWidth) delete box.x;
    this.chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.wasDragged = true;
    if (this.options.select) this.select(box);
    else this.show(box);
  }

  #listen() {
    const { over } = this.chart;
    over.addEventListener("mousemove", () => this.#hover());
    over.addEventListener("mouseleave", () => this.hideTip());
    over.addEventListener("mousedown", () => (this.wasDragged = false));
    over.addEventListener("click", () => {
      if (!this.wasDragged && !this.ring.hidden) this.options.open?.(this.current);
    });
    this.plot.addEventListener("blur", () => this.hideTip());
    this.plot.addEventListener("keydown", (event) => this.#pressed(event));
    this.plot.addEventListener("wheel", (event) => this.#wheeled(event), { passive: false });
    this.#listenToPinches(over);
  }

  /** @param {HTMLElement} over */
  #listenToPinches(over) {
    /** @type {Map<number, PointerEvent>} */
    const fingers = new Map();
    const spread = () => {
      const [one, two] = [...fingers.values()];
      return Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY);
    };
    over.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") fingers.set(event.pointerId, event);
    });
    over.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = fingers.size === 2 ? spread() : 0;
      fingers.set(event.pointerId, event);
      if (before > 0) this.zoom(before / Math.max(spread(), 1), ...this.#shares(event));
    });
    for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
      over.addEventListener(name, (/** @type {any} */ event) => fingers.delete(event.pointerId));
    }
  }

  #hover() {
    const { left = -10, top = -10 } = this.chart.cursor;
    const index = this.#nearest(left, top);
    if (index < 0) this.hideTip();
    else this.showMark(index);
  }

  /**
   * Returns the shown mark that is nearest to a position within reach; −1 if there is none.
   * @param {number} left
   * @param {number} top
   */
  #nearest(left, top) {
    const marks = this.options.marks;
    if (!marks || left == null || left < 0) return -1;
    const [x, y] = [this.#projection("x"), this.#projection("y")];
    let best = marks.covering
      ? marks.covering(this.chart.posToVal(left, "x"), this.chart.posToVal(top, "y"))
      : -1;
    if (best >= 0) return best;
    let least = REACH ** 2;
    for (let index = 0; index < marks.x.length; index += 1) {
      const across = x(marks.x[index]) - left;
      if (across > REACH || across < -REACH) continue;
      const up = y(marks.y[index]) - top;
      const distance = across * across + up * up;
      if (distance < least && marks.isShown?.(index) !== false) [best, least] = [index, distance];
    }
    return best;
  }

  /**
   * Returns the function from values to CSS pixels, without the cost of uPlot's for each mark.
   * @param {"x" | "y"} side
   * @returns {(value: number) => number}
   */
  #projection(side) {
    const [forward] = scaleOf(this.options[side]);
    const [low, high] = this.range[side].map(forward);
    const { clientWidth, clientHeight } = this.chart.over;
    return side === "x"
      ? (value) => ((forward(value) - low) / (high - low)) * clientWidth
      : (value) => (1 - (forward(value) - low) / (high - low)) * clientHeight;
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const step = event.shiftKey ? 10 : 1;
    const actions = {
      ArrowRight: () => this.#step(step),
      ArrowLeft: () => this.#step(-step),
      ArrowUp: () => this.#climb(step),
      ArrowDown: () => this.#climb(-step),
      Enter: () => this.current >= 0 && this.options.open?.(this.current),
      "+": () => this.zoom(0.7, ...this.#currentShares()),
      "=": () => this.zoom(0.7, ...this.#currentShares()),
      "-": () => this.zoom(1 / 0.7, ...this.#currentShares()),
      0: () => this.showAll(),
      "[": () => this.#bound(0),
      "]": () => this.#bound(1),
      Escape: () => { this.hideTip(); this.select(null); },
      ...this.options.keys,
    };
    const action = /** @type {Record<string, () => void>} */ (actions)[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /**
   * Goes to the next mark across.
   * @param {number} step
   */
  #step(step) {
    const marks = this.options.marks;
    if (!marks) return;
    const group = this.current < 0 ? undefined : marks.group?.[this.current];
    const order = this.#order("x").filter((index) => marks.isShown?.(index) !== false
      && (group === undefined || marks.group?.[index] === group));
    const at = order.indexOf(this.current);
    const next = at < 0 ? (step > 0 ? 0 : order.length - 1) : clamp(at + step, 0, order.length - 1);
    this.showMark(order[next] ?? -1, true);
  }

  /**
   * Goes to the next group at the same place, or without groups to the next value.
   * @param {number} step
   */
  #climb(step) {
    const marks = this.options.marks;
    if (!marks) return;
    if (this.current < 0) {
      this.#step(1);
      return;
    }
    let order = [...this.#order("y")].filter((index) => marks.isShown?.(index) !== false);
    if (marks.group) {
      // Of each group the mark that is nearest across.
      /** @type {Map<string | number, number>} */
      const nearest = new Map();
      const distance = (/** @type {number} */ index) => Math.abs(marks.x[index] - marks.x[this.current]);
      for (const index of order) {
        const group = marks.group[index];
        const before = nearest.get(group);
        if (before === undefined || distance(index) < distance(before)) nearest.set(group, index);
      }
      nearest.set(marks.group[this.current], this.current);
      order = [...nearest.values()].sort((one, two) => marks.y[one] - marks.y[two] || one - two);
    }
    const at = order.indexOf(this.current);
    this.showMark(order[clamp(at + step, 0, order.length - 1)] ?? -1, true);
  }

  /**
   * Returns the marks in the order of a coordinate.
   * @param {"x" | "y"} side
   */
  #order(side) {
    const marks = /** @type {Marks} */ (this.options.marks);
    const values = marks[side];
    this.orders[side] ??= Uint32Array.from(values, (_, index) => index)
      .sort((one, two) => values[one] - values[two] || one - two);
    return this.orders[side];
  }

  /** @returns {Cells} the shown marks from left to right; of many, some at even distances */
  #markCells() {
    const { marks, x } = this.options;
    if (!marks) return { head: [x.name], rows: [] };
    const all = [...this.#order("x")].filter((index) =>
      marks.isShown?.(index) !== false && contains(this.range.x, marks.x[index]));
    const every = Math.ceil(all.length / MOST_MARKS) || 1;
    const rows = all.filter((_, place) => place % every === 0).map((index) => [
      tickText(x, marks.x[index]),
      marks.text(index).split("\n").filter((line) => line !== tickText(x, marks.x[index])).join(", "),
    ]);
    const value = every > 1 ? `value, of one point in ${every}` : "value";
    return { head: [x.name, value], rows };
  }

  /**
   * Makes the current mark the begin or the end of the selected range.
   * @param {0 | 1} end
   */
  #bound(end) {
    const marks = this.options.marks;
    if (!marks || this.current < 0 || !this.options.select) return;
    const range = /** @type {[number, number]} */ ([...(this.selected?.x ?? this.range.x)]);
    range[end] = marks.x[this.current];
    if (range[0] > range[1]) range[1 - end] = range[end];
    this.select({ ...this.selected, x: range });
    announce(`range from ${range.map(this.options.x.format ?? ((value) => number(value))).join(" to ")}`);
  }

  /** @param {WheelEvent} event */
  #wheeled(event) {
    if (!event.ctrlKey && document.activeElement !== this.plot) return;
    event.preventDefault();
    const along = event.deltaX || (event.shiftKey ? event.deltaY : 0);
    if (along) this.move(along / this.chart.over.clientWidth, 0);
    else this.zoom(Math.exp(clamp(event.deltaY, -200, 200) / 400), ...this.#shares(event));
  }

  /**
   * Returns a position of the pointer in shares of the plot, from the left and from the bottom.
   * @param {MouseEvent} event
   * @returns {[number, number]}
   */
  #shares(event) {
    const area = this.chart.over.getBoundingClientRect();
    return [(event.clientX - area.left) / area.width, 1 - (event.clientY - area.top) / area.height];
  }

  /** @returns {[number, number]} the current mark in shares of the plot, or the middle */
  #currentShares() {
    const marks = this.options.marks;
    if (!marks || this.current < 0) return [0.5, 0.5];
    const { clientWidth, clientHeight } = this.chart.over;
    return [
      this.#projection("x")(marks.x[this.current]) / clientWidth,
      1 - this.#projection("y")(marks.y[this.current]) / clientHeight,
    ];
  }

  /** @param {Box} box */
  #setRange(box) {
    this.range = { x: box.x ?? this.range.x, y: box.y ?? this.range.y };
    this.chart.batch(() => {
      for (const side of /** @type {const} */ (["x", "y"])) {
        const [min, max] = this.range[side];
        this.chart.setScale(side, { min, max });
      }
    });
    this.hideTip();
  }

  /** Fits the plot to the width of its place. */
  resize() {
    const width = this.plot.clientWidth;
    if (width > 0 && width !== this.chart.width) {
      this.hideTip();
      this.chart.setSize({ width, height: this.options.height });
    }
  }

  /** @param {"x" | "y"} side @param {number} begin @param {number} length @returns {[number, number]} */
  #interval(side, begin, length) {
    return [this.chart.posToVal(begin, side), this.chart.posToVal(begin + length, side)];
  }

  /** @param {"x" | "y"} side @param {number} factor @param {number} at @returns {[number, number]} */
  #stretched(side, factor, at) {
    const [forward, back] = scaleOf(this.options[side]);
    const [low, high] = this.range[side].map(forward);
    const [least, most] = this.options[side].range.map(forward);
    const length = Math.min((high - low) * factor, most - least);
    const begin = clamp(low + (high - low - length) * at, least, most - length);
    return [back(begin), back(begin + length)];
  }

  /** @param {"x" | "y"} side @param {number} share @returns {[number, number]} */
  #shifted(side, share) {
    const [forward, back] = scaleOf(this.options[side]);
    const [low, high] = this.range[side].map(forward);
    const [least, most] = this.options[side].range.map(forward);
    const begin = clamp(low + (high - low) * share, least, most - (high - low));
    return [back(begin), back(begin + high - low)];
  }

  /** @param {"x" | "y"} side @param {number} value @returns {[number, number]} */
  #centred(side, value) {
    if (contains(this.range[side], value) || !Number.isFinite(value)) return this.range[side];
    const [forward] = scaleOf(this.options[side]);
    const [low, high] = this.range[side].map(forward);
    return this.#shifted(side, (forward(value) - (low + high) / 2) / (high - low));
  }

  /**
   * Returns how many ticks an axis has room for.
   * @param {"x" | "y"} side
   */
  #room(side) {
    return side === "x" ? (this.plot.clientWidth - 60) / 55 : (this.options.height - 40) / 24;
  }
}

/**
 * Lays the page out for paper, or for the window again: plots do not follow the width of a sheet by
 * themselves. `printed` in base.css has the width.
 * @param {boolean} isPrinted
 */
function layOut(isPrinted) {
  document.documentElement.classList.toggle("printed", isPrinted);
  allFrames.forEach((frame) => frame.resize());
}

addEventListener("beforeprint", () => layOut(true));
addEventListener("afterprint", () => layOut(false));

/**
 * Shows a tip near a position of the window, inside of it.
 * @param {string} text
 * @param {number} left
 * @param {number} top
 */
function showTip(text, left, top) {
  const tip = find("#tip");
  tip.textContent = text;
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${clamp(left + 14, 4, innerWidth - width - 4)}px`;
  tip.style.top = `${top - height - 12 >= 0 ? top - height - 12 : top + 14}px`;
}
