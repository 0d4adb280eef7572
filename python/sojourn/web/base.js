// Elements, formats, data blocks and colours of all pages.

/** @typedef {ArrayLike<number>} Numbers */

/**
 * Returns the first element that matches a selector.
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {HTMLElement}
 */
function find(selector, root = document) {
  return /** @type {HTMLElement} */ (root.querySelector(selector));
}

/**
 * Creates an element. Attributes that begin with `on` are listeners, `class` and others attributes;
 * `true` is an attribute without a value, and `false`, `null` and `undefined` set no attribute.
 * Texts become text nodes, never HTML.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | number)} children
 * @returns {HTMLElement}
 */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, String(value));
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/**
 * Creates an element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/**
 * Announces a text to screen readers.
 * @param {string} text
 */
function announce(text) {
  find("#live").textContent = text;
}

// Numbers ------------------------------------------------------------------------------------

/**
 * Returns a number with three significant digits; thousands have a narrow space.
 * @param {number} value
 * @param {number} [digits]
 */
function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toExponential(digits - 1);
  const rounded = size >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits));
  const [whole, part] = String(rounded).replace("-", "−").split(".");
  const spaced = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return part ? `${spaced}.${part}` : spaced;
}

/**
 * Returns a quantity in the largest unit in which it is at least 1.
 * @param {number} value
 * @param {[string, number][]} units from small to large, with their sizes
 * @param {number} [digits]
 */
function inUnits(value, units, digits = 3) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "–";
  // 999.9 KB is 1 MB with three digits.
  const size = Number(Math.abs(value).toPrecision(digits));
  const [name, unit] = units.findLast(([, unit]) => size >= unit) ?? units[0];
  return `${number(value / unit, digits)} ${name}`;
}

/** @param {number} value */
const bytes = (value) =>
  inUnits(value, [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9], ["TB", 1e12]]);
/** @type {[string, number][]} */
const TIME_UNITS = [["ps", 1e-12], ["ns", 1e-9], ["µs", 1e-6], ["ms", 1e-3], ["s", 1]];
/** @param {number} value in seconds */
const seconds = (value) => inUnits(value, TIME_UNITS);
/**
 * Returns a time with the digits in which it differs from a time a step later.
 * @param {number} value in seconds
 * @param {number} step
 */
const secondsInSteps = (value, step) =>
  inUnits(value, TIME_UNITS, Math.max(Math.ceil(Math.log10(value / step)) + 1, 3));
/** @param {number} value in bits per second */
const rate = (value) =>
  inUnits(value, [["b/s", 1], ["Kb/s", 1e3], ["Mb/s", 1e6], ["Gb/s", 1e9], ["Tb/s", 1e12]]);
/** @param {number} share */
const percent = (share) => `${number(100 * share)} %`;
/** @param {number} ratio */
const times = (ratio) => `${number(ratio)} ×`;

// Data ---------------------------------------------------------------------------------------

/**
 * Returns the text of a data block as Python wrote it.
 * @param {string} name
 * @returns {string}
 */
function blockText(name) {
  return find(`#block-${CSS.escape(name)}`).textContent ?? "";
}

/** @param {string} name */
const hasBlock = (name) => find(`#block-${CSS.escape(name)}`) !== null;

/**
 * Returns the value of a block of `sheet.as_json`.
 * @param {string} name
 */
const readJson = (name) => JSON.parse(blockText(name));

/**
 * Returns the text of a block of `columns.deflate`.
 * @param {string} name
 */
const readText = async (name) => new TextDecoder().decode(await inflate(blockText(name)));

/**
 * Returns the table of a block of `columns.pack`.
 * @param {string} name
 * @returns {Promise<Table>}
 */
const readTable = async (name) => unpack(await inflate(blockText(name)));

/**
 * Returns the bytes of compressed text.
 * @param {string} text
 * @returns {Promise<Uint8Array>}
 */
async function inflate(text) {
  const packed = "fromBase64" in Uint8Array
    ? /** @type {any} */ (Uint8Array).fromBase64(text)
    : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Columns are `Float64Array`, or arrays of strings.
 * @typedef {{rows: number, columns: Record<string, any>}} Table
 */

/**
 * Returns the table of `columns.pack`.
 * @param {Uint8Array} content
 * @returns {Table}
 */
function unpack(content) {
  const length = new DataView(content.buffer, content.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(content.subarray(4, 4 + length)));
  /** @type {Record<string, any>} */
  const columns = {};
  let offset = 4 + length;
  /** @param {number} count */
  const next = (count) => content.subarray(offset, (offset += count));
  for (const column of head.columns) {
    const rows = head.rows;
    const width = column.kind === "integer" ? column.width : column.kind === "log" ? 2 : 8;
    const planes = next(rows * width);
    const values = new Float64Array(rows);
    if (column.kind === "float") {
      const whole = new Uint8Array(values.buffer);
      for (let plane = 0; plane < 8; plane += 1) {
        for (let row = 0; row < rows; row += 1) whole[8 * row + plane] = planes[plane * rows + row];
      }
    } else if (column.kind === "log") {
      for (let row = 0; row < rows; row += 1) {
        values[row] = Math.exp(column.low + (planes[row] + 256 * planes[rows + row]) * column.step);
      }
    } else {
      readIntegers(planes, width, values, column.is_delta);
    }
    if (column.nulls) {
      const bits = next(Math.ceil(rows / 8));
      for (let row = 0; row < rows; row += 1) if ((bits[row >> 3] >> (row & 7)) & 1) values[row] = NaN;
    }
    columns[column.name] = column.names
      ? Array.from(values, (code) => column.names[code] ?? null)
      : values;
  }
  return { rows: head.rows, columns };
}

/**
 * Reads zigzag integers. The magnitude is taken from two halves, as it has more than 32 bits.
 * @param {Uint8Array} planes
 * @param {number} width
 * @param {Float64Array} values
 * @param {boolean} isDelta
 */
function readIntegers(planes, width, values, isDelta) {
  const rows = values.length;
  let before = 0;
  for (let row = 0; row < rows; row += 1) {
    let low = 0;
    let high = 0;
    for (let plane = 0; plane < width; plane += 1) {
      const byte = planes[plane * rows + row];
      if (plane < 4) low += byte * 2 ** (8 * plane);
      else high += byte * 2 ** (8 * (plane - 4));
    }
    const size = high * 2 ** 31 + Math.floor(low / 2);
    const value = low % 2 ? -size - 1 : size;
    before = isDelta ? before + value : value;
    values[row] = before;
  }
}

// Colours ------------------------------------------------------------------------------------

/** @type {Map<string, string>} */
const cssValues = new Map();

/**
 * Returns the value of a CSS variable of the page, such as `--ink`; empty if it is not defined.
 * @param {string} name
 */
function css(name) {
  let value = cssValues.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    cssValues.set(name, value);
  }
  return value;
}

/**
 * Returns a colour of Python in the present theme; a name that begins with `--` is a variable.
 * @param {string} name
 */
function colour(name) {
  if (name.startsWith("--")) return css(name);
  return css(`--c${name.slice(1).toLowerCase()}`) || name;
}

/**
 * Returns a colour for a style attribute, which follows the theme by itself.
 * @param {string} name
 */
function styleColour(name) {
  return name.startsWith("--") ? `var(${name})` : `var(--c${name.slice(1).toLowerCase()}, ${name})`;
}

/** @type {Set<() => void>} */
const themeListeners = new Set();
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
/** @type {string | null} the reader's choice, which overrides the system's */
let chosenTheme = null;

/** Applies the theme: light in print, else the reader's choice, else the system's. */
function applyTheme(isPrinted = false) {
  const theme = isPrinted ? "light" : chosenTheme ?? (darkSystem.matches ? "dark" : "light");
  if (document.documentElement.dataset.theme === theme) return;
  document.documentElement.dataset.theme = theme;
  cssValues.clear();
  themeListeners.forEach((listener) => listener());
}

applyTheme();
darkSystem.addEventListener("change", () => applyTheme());
addEventListener("beforeprint", () => applyTheme(true));
addEventListener("afterprint", () => applyTheme());

// Widgets ------------------------------------------------------------------------------------

const KEYS = [
  ["← →", "previous, next point (Shift: ten)"],
  ["↑ ↓", "line above, below; without lines, larger, smaller value"],
  ["+ − 0", "zoom in, zoom out, show all"],
  ["Esc", "hide the value, drop the selection"],
  ["Ctrl and wheel", "zoom; with Shift, move"],
  ["double click", "show all"],
];

/**
 * Adds the buttons of a page: theme, and a list of keys.
 * @param {HTMLElement} parent
 * @param {string[][]} [moreKeys] keys of this page, with their meaning
 */
function pageButtons(parent, moreKeys = []) {
  const list = element("dl");
  for (const [key, meaning] of [...KEYS, ...moreKeys]) {
    list.append(element("dt", {}, key), element("dd", {}, meaning));
  }
  const close = element("button", { onclick: () => dialog.close() }, "Close");
  const title = element("h2", { id: "keys-title" }, "Keys and mouse in a plot");
  const dialog = /** @type {HTMLDialogElement} */ (
    element("dialog", { "aria-labelledby": "keys-title" }, title, list, close)
  );
  const theme = element("button", { onclick: () => {
    chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  } });
  const nameTheme = () => {
    theme.textContent = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    theme.setAttribute("aria-label", `${theme.textContent} colours`);
  };
  nameTheme();
  themeListeners.add(nameTheme);
  parent.append(theme, element("button", { onclick: () => dialog.showModal() }, "keys"));
  document.body.append(dialog);
}

/** @typedef {"box" | "line" | "dashed" | "hollow"} Swatch */
/** @typedef {{name: string, colour: string, swatch?: Swatch, note?: string}} Entry */

/**
 * Adds a legend whose entries are switched on and off.
 * @param {HTMLElement} parent
 * @param {(Entry & {drawing?: SVGElement})[]} entries `drawing`: a swatch of its own
 * @param {(hidden: Set<string>) => void} changed receives the names that are switched off
 * @returns {Set<string>} the names that are switched off
 */
function legend(parent, entries, changed) {
  /** @type {Set<string>} */
  const hidden = new Set();
  const list = element("div", { class: "legend", role: "group", "aria-label": "Legend" });
  for (const { name, colour, swatch = "box", note, drawing } of entries) {
    const mark = drawing ?? element("span", { class: `swatch ${swatch}` });
    mark.style.setProperty("--swatch", styleColour(colour));
    const button = element("button", { "aria-pressed": "true", onclick: () => {
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      changed(hidden);
    } }, mark, note ? `${name} ${note}` : name);
    list.append(button);
  }
  parent.append(list);
  return hidden;
}

/** @typedef {{head: string[], rows: (string | number)[][]}} Cells */

const MOST_ROWS = 1000;

/**
 * Returns a table; numbers are formatted, and the first column is a head of its row.
 * @param {Cells} cells
 * @param {string} caption
 */
function tableOf({ head, rows }, caption) {
  // Columns with words alone are aligned to the left; a dash stands for an absent number.
  const isText = (/** @type {number} */ column) =>
    !rows.some((row) => /^(≥ ?)?[−-]?\d|^–$/.test(String(row[column])));
  const classes = head.map((_, column) => (isText(column) ? "text" : null));
  const names = head.map((name, column) =>
    element("th", { scope: "col", class: classes[column] }, name));
  const top = element("tr", {}, ...names);
  const body = element("tbody");
  for (const row of rows.slice(0, MOST_ROWS)) {
    const cells = row.map((cell, column) =>
      element("td", { class: classes[column] }, typeof cell === "number" ? number(cell, 4) : cell));
    body.append(element("tr", {}, ...cells));
  }
  const rest = rows.length - MOST_ROWS;
  if (rest > 0) body.append(element("tr", {}, element("td", {}, `and ${number(rest)} more rows`)));
  const title = element("caption", { class: "unseen" }, caption);
  const table = element("table", {}, title, element("thead", {}, top), body);
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
}

/**
 * Adds a button that shows a table and hides it again.
 * @param {HTMLElement} parent of the button
 * @param {HTMLElement} below receives the table at its end
 * @param {string} caption
 * @param {() => Cells} cells makes the table when the button is pressed
 */
function tableButton(parent, below, caption, cells) {
  const place = element("div", { hidden: true });
  const button = element("button", { class: "plain", "aria-expanded": "false", title: caption, onclick: () => {
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", String(!place.hidden));
    place.replaceChildren(...(place.hidden ? [] : [tableOf(cells(), caption)]));
  } }, "table");
  parent.append(" ", button);
  below.append(place);
}

/**
 * Returns a name that chooses what it names; unlike other buttons, it is printed.
 * @param {string} name
 * @param {() => void} open
 * @param {string} [label] for screen readers
 */
function nameButton(name, open, label) {
  return element("button", { class: "plain name", "aria-label": label, onclick: open }, name);
}

/**
 * Adds a button that copies a text.
 * @param {HTMLElement} parent
 * @param {() => string} text
 */
function copyButton(parent, text) {
  const button = element("button", { class: "plain", onclick: async () => {
    const area = /** @type {HTMLTextAreaElement} */ (element("textarea", { class: "unseen" }));
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      // A page from disk may lack the permission for the clipboard.
      area.value = text();
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.textContent = "copied";
    announce("copied");
    setTimeout(() => (button.textContent = "copy"), 1500);
  } }, "copy");
  parent.append(button);
}

/**
 * Adds tabs; the first is selected.
 * @param {HTMLElement} parent of the buttons
 * @param {HTMLElement} panel receives the contents
 * @param {{name: string, show: () => void}[]} tabs
 * @param {string} label
 */
function addTabs(parent, panel, tabs, label) {
  const buttons = tabs.map(({ name, show }, index) => element("button", {
    role: "tab", "aria-selected": String(index === 0), tabindex: index === 0 ? 0 : -1,
    onclick: () => {
      buttons.forEach((button, other) => {
        button.setAttribute("aria-selected", String(other === index));
        button.tabIndex = other === index ? 0 : -1;
      });
      show();
    },
  }, name));
  parent.setAttribute("role", "tablist");
  parent.setAttribute("aria-label", label);
  parent.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = buttons.indexOf(/** @type {HTMLElement} */ (event.target));
    if (!step || at < 0) return;
    const next = buttons[(at + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
  panel.setAttribute("role", "tabpanel");
  panel.setAttribute("aria-label", label);
  parent.append(...buttons);
}

// State in the address -------------------------------------------------------------------------

/** Returns the state in the address: `#flow=17&t=0.1-0.2` gives `flow` and `t`. */
function readAddress() {
  const hash = location.hash.slice(1);
  return new Map(hash.includes("=") ? new URLSearchParams(hash) : []);
}

/**
 * Writes state into the address; empty values are removed.
 * @param {Record<string, string | number | null>} changes
 */
function writeAddress(changes) {
  const state = readAddress();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") state.delete(name);
    else state.set(name, String(value));
  }
  const text = new URLSearchParams([...state]).toString().replaceAll("%3E", ">")
    .replaceAll("%2C", ",");
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}
