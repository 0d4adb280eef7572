// Picture of a network: shapes of links that are coloured, pointed at and chosen.

const MOST_LINES = 300;
const WIDTH = 680;

/**
 * Draws the network: hosts are cells under their switches, with a triangle for each direction.
 * Links between switches are lines; of more than `MOST_LINES`, every switch is a cell with the
 * busiest of its links up, and down.
 * @param {any} network
 * @param {Links} links
 * @param {{tip: (link: number) => string, open: (link: number) => void, order: () => number[]}} actions
 */
function drawNetwork(network, links, { tip, open, order }) {
  const { names, x, y } = network;
  // Hosts that are joined directly are drawn as switches are.
  const isSwitch = network.isSwitch.some(Boolean) ? network.isSwitch : names.map(() => 1);
  const between = [...links.names.keys()].filter(
    (link) => isSwitch[links.from[link]] && isSwitch[links.to[link]],
  );
  const hasLines = between.length <= 2 * MOST_LINES;
  const root = svg("svg", {
    class: "network",
    tabindex: 0,
    role: "application",
    "aria-label": "network; arrow keys go through the links from the largest value on, Enter chooses one",
  });
  /** @type {{shape: SVGElement, links: number[]}[]} */
  const shapes = [];
  const levels = [
    ...new Set(
      names.map((/** @type {string} */ _, /** @type {number} */ node) => (isSwitch[node] ? y[node] : NaN)),
    ),
  ]
    .filter((level) => !Number.isNaN(level))
    .sort((one, two) => two - one);
  const tiers = levels.map((level) =>
    [...names.keys()]
      .filter((node) => isSwitch[node] && y[node] === level)
      .sort((one, two) => x[one] - x[two]),
  );
  const hosts = new Map();
  /** @type {Map<number, {up: number[], down: number[]}>} */
  const access = new Map();
  const accessOf = (/** @type {number} */ node) => {
    const own = access.get(node) ?? { up: [], down: [] };
    access.set(node, own);
    return own;
  };
  links.names.forEach((_, link) => {
    const [from, to] = [links.from[link], links.to[link]];
    if (!isSwitch[from]) accessOf(from).up.push(link);
    if (!isSwitch[to]) accessOf(to).down.push(link);
    if (!isSwitch[from] && isSwitch[to]) hosts.set(to, [...new Set([...(hosts.get(to) ?? []), from])]);
  });
  const place = hasLines ? placeInTiers(tiers, hosts) : placeInPods(tiers, hosts, links, isSwitch);
  root.setAttribute("viewBox", `0 0 ${WIDTH} ${place.height}`);

  const add = (/** @type {SVGElement} */ shape, /** @type {number[]} */ own) => {
    if (!own.length) return;
    shapes.push({ shape, links: own });
    shape.dataset.shape = String(shapes.length - 1);
    root.append(shape);
  };
  if (hasLines) {
    for (const link of between) {
      const [one, two] = [place.at.get(links.from[link]), place.at.get(links.to[link])];
      const length = Math.hypot(two.x - one.x, two.y - one.y) || 1;
      // The two directions lie beside each other, and further cables beside these.
      const rank = links.cable[link];
      const isBack = links.from[link] > links.to[link];
      const aside = 2.2 + 9 * Math.floor(rank / 2) * (rank % 2 === Number(isBack) ? 1 : -1);
      const [across, down] = [((one.y - two.y) / length) * aside, ((two.x - one.x) / length) * aside];
      add(
        svg("line", {
          x1: one.x + across,
          y1: one.y + down,
          x2: two.x + across,
          y2: two.y + down,
          "stroke-width": 3,
        }),
        [link],
      );
    }
  }
  /**
   * @param {{x: number, y: number}} corner @param {number} side
   * @param {number[]} up @param {number[]} down
   */
  const cell = (corner, side, up, down) => {
    const [left, top, right, bottom] = [corner.x, corner.y, corner.x + side, corner.y + side];
    add(svg("polygon", { points: `${left},${top} ${right},${top} ${left},${bottom}` }), up);
    add(svg("polygon", { points: `${right},${top} ${right},${bottom} ${left},${bottom}` }), down);
  };
  for (const [node, { up, down }] of access) {
    const corner = place.at.get(node);
    if (corner) cell(corner, place.side, up, down);
  }
  for (const [level, tier] of tiers.entries()) {
    for (const node of tier) {
      const corner = place.at.get(node);
      if (!hasLines) {
        const above = new Set(tiers.slice(0, level).flat());
        const below = new Set(tiers.slice(level + 1).flat());
        const isTop = level === 0;
        const up = between.filter((link) =>
          isTop ? links.to[link] === node : links.from[link] === node && above.has(links.to[link]),
        );
        const down = between.filter((link) =>
          isTop
            ? links.from[link] === node && below.has(links.to[link])
            : links.to[link] === node && above.has(links.from[link]),
        );
        cell(corner, place.side, up, down);
        continue;
      }
      const wide = Math.min(place.room - 4, Math.max(30, 7 * names[node].length + 8));
      root.append(
        svg("rect", {
          class: "switch",
          x: corner.x - wide / 2,
          y: corner.y - 9,
          width: wide,
          height: 18,
          rx: 5,
        }),
      );
      const text = svg("text", { x: corner.x, y: corner.y + 4 });
      text.textContent = shortName(names[node], wide);
      root.append(text);
    }
  }
  for (const label of place.labels) {
    const text = svg("text", { x: label.x, y: label.y, class: "left" });
    text.textContent = label.text;
    root.append(text);
  }
  const pointer = svg("polygon", { class: "pointer" });
  pointer.setAttribute("hidden", "");

  let current = -1;
  const colourValue = new Float64Array(shapes.length);
  const linkOf = (/** @type {Event} */ event) => {
    const shape = /** @type {SVGElement} */ (event.target).dataset?.shape;
    return shape === undefined ? -1 : shapes[Number(shape)].links[colourValue[Number(shape)]];
  };
  root.addEventListener("mousemove", (event) => {
    const link = linkOf(event);
    if (link >= 0) showTip(tip(link), event.clientX, event.clientY);
    else find("#tip").hidden = true;
  });
  root.addEventListener("mouseleave", () => (find("#tip").hidden = true));
  root.addEventListener("click", (event) => {
    const link = linkOf(event);
    if (link >= 0) open(link);
  });
  root.addEventListener("keydown", (event) => {
    const steps = /** @type {Record<string, number>} */ ({
      ArrowRight: 1,
      ArrowDown: 1,
      ArrowLeft: -1,
      ArrowUp: -1,
    });
    const links = order();
    if (event.key === "Enter" && current >= 0) open(links[current]);
    else if (steps[event.key]) {
      current = clamp(current + steps[event.key] * (event.shiftKey ? 10 : 1), 0, links.length - 1);
      const text = tip(links[current]);
      const area = root.getBoundingClientRect();
      showTip(text, area.left, area.top + 20);
      announce(text.replaceAll("\n", ", "));
    } else return;
    event.preventDefault();
  });
  root.addEventListener("blur", () => (find("#tip").hidden = true));

  return {
    root,
    hasHosts: access.size > 0,
    /** @param {(link: number) => string} colourOf @param {string | null} name of the chosen link */
    paint(colourOf, name) {
      const rank = new Map(order().map((link, at) => [link, at]));
      shapes.forEach(({ shape, links: own }, index) => {
        let best = 0;
        own.forEach((link, at) => {
          if ((rank.get(link) ?? Infinity) < (rank.get(own[best]) ?? Infinity)) best = at;
        });
        colourValue[index] = best;
        const attribute = shape.tagName === "line" ? "stroke" : "fill";
        shape.setAttribute(attribute, colourOf(own[best]));
        shape.classList.toggle(
          "chosen",
          own.some((link) => links.names[link] === name),
        );
      });
    },
  };
}

/** @param {string} name @param {number} width in pixels */
function shortName(name, width) {
  const most = Math.floor((width - 4) / 6);
  if (name.length <= most) return name;
  const [, word, rest] = /** @type {string[]} */ (/^(\D*)(.*)$/.exec(name));
  return `${word.slice(0, 1)}${rest}`.slice(0, Math.max(most, 1));
}

/**
 * Places switches in rows, the highest tier first, and hosts in blocks below their switches.
 * @param {number[][]} tiers
 * @param {Map<number, number[]>} hosts
 */
function placeInTiers(tiers, hosts) {
  const at = new Map();
  const most = Math.max(1, ...[...hosts.values()].map((list) => list.length));
  const widest = Math.max(...tiers.map((tier) => tier.length), 1);
  const room = WIDTH / widest;
  const columns = Math.min(most, Math.max(2, Math.ceil(Math.sqrt(most))));
  const side = clamp((room - 10) / columns, 3, 22);
  const rise = tiers.length > 1 ? 110 : 0;
  tiers.forEach((tier, level) =>
    tier.forEach((node, order) => {
      const centre = { x: ((order + 0.5) / tier.length) * WIDTH, y: 16 + level * rise };
      at.set(node, centre);
      (hosts.get(node) ?? []).forEach((host, place) =>
        at.set(host, {
          x: centre.x - (Math.min(columns, most) * side) / 2 + (place % columns) * side + 0.5,
          y: centre.y + 16 + Math.floor(place / columns) * side,
        }),
      );
    }),
  );
  const bottom = Math.max(...[...at.values()].map((place) => place.y), 0);
  return { at, side: side - 1, room, height: bottom + side + 8, labels: /** @type {any[]} */ ([]) };
}

/**
 * Places the highest tier in a row, and below it a block for each pod: the switches that are
 * connected without the highest tier, with their hosts.
 * @param {number[][]} tiers
 * @param {Map<number, number[]>} hosts
 * @param {Links} links
 * @param {number[]} isSwitch
 */
function placeInPods(tiers, hosts, links, isSwitch) {
  const at = new Map();
  const labels = [];
  const [top, ...lower] = tiers;
  const isTop = new Set(top);
  /** @type {Map<number, number[]>} */
  const neighbours = new Map();
  links.names.forEach((_, link) => {
    const [from, to] = [links.from[link], links.to[link]];
    if (isSwitch[from] && isSwitch[to] && !isTop.has(from) && !isTop.has(to)) {
      neighbours.set(from, [...(neighbours.get(from) ?? []), to]);
    }
  });
  const podOf = new Map();
  let pods = 0;
  for (const start of lower.flat()) {
    if (podOf.has(start)) continue;
    const stack = [start];
    while (stack.length) {
      const node = /** @type {number} */ (stack.pop());
      if (podOf.has(node)) continue;
      podOf.set(node, pods);
      stack.push(...(neighbours.get(node) ?? []));
    }
    pods += 1;
  }
  const across = Math.min(pods, 8);
  const room = WIDTH / across;
  const members = Array.from({ length: pods }, (_, pod) =>
    lower.map((tier) => tier.filter((node) => podOf.get(node) === pod)),
  );
  const widths = members.map((rows) => Math.max(...rows.map((row) => row.length)));
  const side = clamp((room - 14) / (Math.max(...widths) + 1), 3, 12);
  const perRow = Math.max(1, Math.floor((WIDTH - 8) / side));
  labels.push({
    x: 4,
    y: 11,
    text: `${top.length} core switches: the busiest of the links to each, and from it`,
  });
  top.forEach((node, order) =>
    at.set(node, { x: 4 + (order % perRow) * side, y: 18 + Math.floor(order / perRow) * side }),
  );
  let base = 18 + Math.ceil(top.length / perRow) * side + 22;
  for (let first = 0; first < pods; first += across) {
    let lowest = base;
    members.slice(first, first + across).forEach((rows, place) => {
      const left = place * room + 6;
      labels.push({ x: left, y: base - 4, text: `pod ${first + place}` });
      rows.forEach((row, level) =>
        row.forEach((node, order) => {
          const corner = { x: left + order * side, y: base + level * side * 1.4 };
          at.set(node, corner);
          (hosts.get(node) ?? []).forEach((host, count) => {
            const spot = { x: corner.x, y: corner.y + (count + 1.4) * side };
            at.set(host, spot);
            lowest = Math.max(lowest, spot.y);
          });
          lowest = Math.max(lowest, corner.y);
        }),
      );
    });
    base = lowest + side + 24;
  }
  return { at, side: side - 1, room, height: base - 14, labels };
}
