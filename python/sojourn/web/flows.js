// Panel of all flows: a point for each, or their density, coloured by the main cause.

/**
 * @typedef {object} Cloud
 * @property {Numbers} flow numbers
 * @property {Numbers} size
 * @property {Float64Array} value
 * @property {Numbers} cause index in `causes`
 * @property {Numbers} weight how many flows a row counts
 * @property {(row: number) => boolean} isRecorded
 * @property {(row: number) => string} text
 * @property {(row: number, time: [number, number]) => boolean} isDuring true if in progress then
 * @property {{name: string, colour: string}[]} causes
 * @property {Grid[]} grids densities of all flows, if the cloud has only a sample of them
 * @property {{name: string, colour: string, range: [number, number], rule: number}} up vertical axis
 */

/**
 * @typedef {object} Grid
 * @property {number} across number of cells
 * @property {number} down
 * @property {[number, number]} x decimal logarithms of the ends of the axis
 * @property {[number, number]} y
 * @property {Table} cells `cell`, row by row from the top, `count` of flows and `cause` of most of them
 */

const MOST_POINTS = 6000;
const CELL = 2;

/**
 * Returns the causes of a cloud: the parts, and three others.
 * @param {any} head
 * @param {any} run its part of the head
 */
const causesOf = (head, run) => [
  ...head.parts.map((/** @type {any} */ part) => ({ name: part.label, colour: part.colour })),
  { name: "near the ideal FCT", colour: "--near" },
  run.hasBreakdown ? { name: "unfinished", colour: "--unfinished" } : { name: "flows", colour: "--plain" },
  { name: "terminated", colour: "--terminated" },
];

/** @param {any} run @returns {Set<number>} numbers of its recorded flows */
const recordedOf = (run) => new Set(run.recorded.map((/** @type {any} */ entry) => entry.flow));

/**
 * Returns the flows of a run with their slowdowns.
 * @param {any} head
 * @param {any} run its part of the head
 * @param {Table} table
 * @param {Table | null} cells of the density of all flows, if the table is a sample
 * @returns {Cloud}
 */
function slowdownCloud(head, run, table, cells) {
  const { flow, size_bytes: size, fct_s: fct, ideal_fct_s: ideal, cause, outcome } = table.columns;
  const value = fct.map((/** @type {number} */ time, /** @type {number} */ row) => time / ideal[row]);
  const isFinished = (/** @type {number} */ row) => outcome[row] === "finished";
  // Unfinished flows stand on the upper rim.
  const shown = value.map((/** @type {number} */ one, /** @type {number} */ row) =>
    isFinished(row) ? one : run.rim,
  );
  const causes = causesOf(head, run);
  const recorded = recordedOf(run);
  return {
    flow,
    size,
    value: shown,
    cause,
    causes,
    weight: weightsOf(run, table),
    isRecorded: (row) => recorded.has(flow[row]),
    isDuring: duringOf(table),
    grids: cells ? [{ ...run.density, cells }] : [],
    up: { name: "slowdown (1: ideal FCT)", colour: "--ink", range: [0.9, run.rim * 1.12], rule: 1 },
    text: (row) =>
      [
        nameOfFlow(run, table, row),
        isFinished(row)
          ? `FCT ${seconds(fct[row])}, ${times(value[row])} the ideal FCT`
          : timeOf({ outcome: outcome[row], fct_s: fct[row] }),
        ...largestParts(head, table, row, 3),
      ].join("\n"),
  };
}

/**
 * Returns the flows of two runs that have different flows, coloured by run.
 * @param {any} head
 * @param {Cloud[]} clouds
 * @returns {Cloud}
 */
function bothClouds(head, clouds) {
  const lengths = clouds.map((cloud) => cloud.flow.length);
  const join = (/** @type {(cloud: Cloud) => ArrayLike<number>} */ part) =>
    Float64Array.from(clouds.flatMap((cloud) => Array.from(part(cloud))));
  const cause = Float64Array.from({ length: lengths[0] + lengths[1] }, (_, row) =>
    Number(row >= lengths[0]),
  );
  const [one, two] = clouds;
  return {
    flow: join((cloud) => cloud.flow),
    size: join((cloud) => cloud.size),
    value: join((cloud) => cloud.value),
    weight: join((cloud) => cloud.weight),
    cause,
    causes: head.runs.map((/** @type {any} */ run, /** @type {number} */ index) => ({
      name: run.name,
      colour: RUN_COLOURS[index],
    })),
    grids: clouds.flatMap((one, index) =>
      one.grids.map((grid) => {
        const columns = { ...grid.cells.columns, cause: grid.cells.columns.cause.map(() => index) };
        return { ...grid, cells: { ...grid.cells, columns } };
      }),
    ),
    isRecorded: (row) => (row < lengths[0] ? one.isRecorded(row) : two.isRecorded(row - lengths[0])),
    isDuring: (row, time) =>
      row < lengths[0] ? one.isDuring(row, time) : two.isDuring(row - lengths[0], time),
    up: { ...one.up, range: [0.9, Math.max(one.up.range[1], two.up.range[1])] },
    text: (row) =>
      row < lengths[0]
        ? `${head.runs[0].name}, ${one.text(row)}`
        : `${head.runs[1].name}, ${two.text(row - lengths[0])}`,
  };
}

/**
 * Returns the function that is true if a flow is in progress at a time.
 * @param {Table} table
 * @returns {(row: number, time: [number, number]) => boolean}
 */
function duringOf(table) {
  const { start_ns: start, fct_s: fct } = table.columns;
  return (row, [begin, end]) => start[row] * 1e-9 <= end && start[row] * 1e-9 + fct[row] >= begin;
}

/** @param {any} run @param {Table} table @param {number} row */
function nameOfFlow(run, table, row) {
  const { flow, size_bytes: size, source, target } = table.columns;
  const hosts = [source, target].map((numbers) => nameOfHost(run, numbers[row])).join(" → ");
  return `flow ${flow[row]}: ${bytes(size[row])}, ${hosts}`;
}

/** @param {any} run @param {number} host */
const nameOfHost = (run, host) => run.hosts[host] ?? `host ${host}`;

/** @param {any} run @param {Table} table */
const weightsOf = (run, table) =>
  Float64Array.from(table.columns.is_slow, (/** @type {any} */ isSlow) =>
    Number(isSlow) ? 1 : run.weight,
  );

/**
 * Returns a part of a flow's completion time as a share; 0 of a part that no flow has.
 * @param {any} head
 * @param {Table} table
 * @param {string} part
 * @param {number} row
 * @returns {number}
 */
const shareOf = (head, table, part, row) => (table.columns[part]?.[row] ?? 0) / head.shareSteps;

/**
 * Returns the largest parts of a flow's completion time in words.
 * @param {any} head
 * @param {Table} table
 * @param {number} row
 * @param {number} most
 */
function largestParts(head, table, row, most) {
  const parts = head.parts
    .map((/** @type {any} */ part) => ({ ...part, share: shareOf(head, table, part.name, row) }))
    .filter((/** @type {any} */ part) => part.share >= 0.005);
  parts.sort((/** @type {any} */ one, /** @type {any} */ two) => two.share - one.share);
  return parts
    .slice(0, most)
    .map((/** @type {any} */ part) => `${part.label} ${Math.round(100 * part.share)} %`);
}

/**
 * Adds the panel of flows.
 * @param {HTMLElement} parent
 * @param {any} head
 * @param {Cloud} cloud
 * @param {string} colours what colours mean
 * @param {{size: number[], value: number[]}} medians
 */
function addFlows(parent, head, cloud, colours, medians) {
  const [run] = head.runs;
  const ringed = Array.from(cloud.flow, (_, row) => row).filter(cloud.isRecorded);
  const about = [
    colours,
    medians.size.length ? "line: median" : "",
    ringed.length ? "○ recorded packet by packet" : "",
    run.weight > 1
      ? `${cloud.grids.length ? "density of all flows; " : ""}${number(cloud.flow.length)} of ` +
        `${number(run.flows)} flows are shown`
      : "",
  ]
    .filter(Boolean)
    .join("; ");
  const { card } = addCard(parent, "Flows", about);
  if (cloud.flow.length === 0) {
    card.classList.add("wide");
    const reason = head.pairs ? "finished in both runs" : "of finite size started after the warm-up";
    card.append(element("p", {}, `No flow ${reason}.`));
    return null;
  }
  const logs = { x: logsOf(cloud.size), y: logsOf(cloud.value) };
  // Two runs may have different flows of one number.
  /** @type {Map<number, number[]>} */
  const rowsOf = new Map();
  for (let row = 0; row < cloud.flow.length; row += 1) {
    rowsOf.set(cloud.flow[row], [...(rowsOf.get(cloud.flow[row]) ?? []), row]);
  }
  const sizes = [Math.min(...ends(cloud.size)) / 1.6, Math.max(...ends(cloud.size)) * 1.6];
  const ofRows = (/** @type {number[]} */ rows) => ({
    x: rows.map((row) => cloud.size[row]),
    y: rows.map((row) => cloud.value[row]),
  });

  const drawGrids = gridLayer(cloud);
  const drawCloud = cloudLayer(cloud, logs, () => frame.range);
  const frame = new Frame(card, {
    label: `${cloud.up.name} against flow size`,
    x: { name: "flow size", scale: "log", range: /** @type {[number, number]} */ (sizes), format: bytes },
    y: { name: cloud.up.name, scale: "log", range: cloud.up.range },
    height: innerWidth < 640 ? 300 : 460,
    table: "marks",
    layers: () => {
      const open = rowsOf.get(chosen.flow ?? -1) ?? [];
      return [
        drawGrids,
        drawCloud,
        ruleLayer({ y: cloud.up.rule, colour: "--ink", dash: [5, 4] }),
        ...haloed({ x: medians.size, y: medians.value }),
        pointsLayer({ ...ofRows(ringed), colour: "--ink", hollow: true, size: 4, width: 1 }),
        pointsLayer({
          ...ofRows(open),
          colour: "--link",
          hollow: true,
          size: 7,
          width: 2.5,
        }),
      ];
    },
    marks: { x: cloud.size, y: cloud.value, text: cloud.text, isShown: (row) => isShown(cloud, row) },
    open: (row) => choose({ flow: cloud.flow[row] }),
    select: (box) => choose({ box }),
    keys: { n: () => openRecorded(1), p: () => openRecorded(-1) },
  });
  /** @param {number} step */
  function openRecorded(step) {
    if (!ringed.length) return;
    const at = ringed.findIndex((row) => cloud.flow[row] === chosen.flow);
    // Without an open recorded flow, the first one is next, and the last one is previous.
    const from = at < 0 && step < 0 ? 0 : at;
    const row = ringed[(from + step + ringed.length) % ringed.length];
    choose({ flow: cloud.flow[row] });
    frame.showMark(row, true);
  }

  const counts = new Float64Array(cloud.causes.length);
  for (let row = 0; row < cloud.cause.length; row += 1) counts[cloud.cause[row]] += cloud.weight[row];
  const all = counts.reduce((sum, count) => sum + count, 0);
  const entries = [...counts.keys()]
    .filter((cause) => counts[cause] > 0)
    .sort((one, two) => counts[two] - counts[one])
    .map((cause) => ({
      ...cloud.causes[cause],
      note: percent(Number((counts[cause] / all).toPrecision(2))),
    }));
  legend(card, entries, (hidden) => {
    frame.hideTip();
    choose({ hidden });
  });
  followers.push((changed) => {
    if ("box" in changed) frame.selected = chosen.box;
    if ("flow" in changed || selects(changed)) frame.draw();
  });
  return frame;
}

/**
 * Returns true unless the cause of the flow is hidden, or the flow is not in progress at the chosen time.
 * @param {Cloud} cloud
 * @param {number} row
 */
const isShown = (cloud, row) =>
  !chosen.hidden.has(cloud.causes[cloud.cause[row]].name) && isThen(cloud, row);

/**
 * Returns true if all flows are shown, or the flow is in progress at the chosen time.
 * @param {Cloud} cloud
 * @param {number} row
 */
const isThen = (cloud, row) => !chosen.isOnlyThen || !chosen.time || cloud.isDuring(row, chosen.time);

/** @param {Numbers} values */
const logsOf = (values) => Float32Array.from(values, Math.log10);

/** @param {Numbers} values @returns {[number, number]} the least and the greatest */
function ends(values) {
  let [least, most] = [Infinity, -Infinity];
  for (let row = 0; row < values.length; row += 1) {
    if (values[row] < least) least = values[row];
    if (values[row] > most) most = values[row];
  }
  return [least, most];
}

/**
 * Returns layers of a line that stays visible on marks of every colour.
 * @param {{x: Numbers, y: Numbers}} line
 */
const haloed = (line) => [
  lineLayer({ ...line, colour: "--card", width: 5, alpha: 0.8 }),
  lineLayer({ ...line, colour: "--ink", width: 2.2 }),
];

/**
 * Returns true if the densities of all flows are shown, which cannot be filtered by time.
 * @param {Cloud} cloud
 */
const showsGrids = (cloud) => cloud.grids.length > 0 && !(chosen.isOnlyThen && chosen.time);

/**
 * Returns a layer with the densities of all flows.
 * @param {Cloud} cloud
 * @returns {Layer}
 */
function gridLayer(cloud) {
  let key = "";
  /** @type {OffscreenCanvas[]} */
  let pictures = [];
  return (pen) => {
    if (!showsGrids(cloud)) return;
    const places = cloud.grids.map(({ across, down, x, y }) => {
      const [left, right] = x.map((log) => pen.x(10 ** log));
      const [bottom, top] = y.map((log) => pen.y(10 ** log));
      // Cells smaller than those of the picture are added up.
      const joined = (/** @type {number} */ size) => Math.max(Math.ceil((CELL * pen.ratio) / size), 1);
      const [width, height] = [(right - left) / across, (bottom - top) / down];
      return { left, top, width, height, wide: joined(width), high: joined(height) };
    });
    const sizes = places.flatMap(({ wide, high }) => [wide, high]);
    const own = [document.documentElement.dataset.theme, ...sizes, ...chosen.hidden].join();
    if (own !== key) {
      pictures = cloud.grids.map(({ across, down, cells: { rows, columns } }, index) => {
        const { wide, high } = places[index];
        const shape = /** @type {[number, number]} */ ([Math.ceil(across / wide), Math.ceil(down / high)]);
        const shown = Uint32Array.from({ length: rows }, (_, row) => row).filter(
          (row) => !chosen.hidden.has(cloud.causes[columns.cause[row]].name),
        );
        const cellOf = (/** @type {number} */ row) => {
          const cell = columns.cell[row];
          return Math.floor(cell / across / high) * shape[0] + Math.floor((cell % across) / wide);
        };
        return densityOf({ ...cloud, cause: columns.cause, weight: columns.count }, shape, shown, cellOf);
      });
      key = own;
    }
    const { context } = pen;
    context.imageSmoothingEnabled = false;
    context.globalAlpha = 1;
    places.forEach(({ left, top, width, height, wide, high }, index) => {
      const picture = pictures[index];
      context.drawImage(picture, left, top, picture.width * wide * width, picture.height * high * height);
    });
  };
}

/**
 * Returns a layer with points; of many, with cells in the colour of the cause that most flows of
 * the cell have, and the opacity of their number.
 * @param {Cloud} cloud
 * @param {{x: Float32Array, y: Float32Array}} logs
 * @param {() => {x: [number, number], y: [number, number]}} range
 * @returns {Layer}
 */
function cloudLayer(cloud, logs, range) {
  const rows = new Uint32Array(cloud.value.length);
  // The picture of many flows is kept, as for another ring or box they are the same.
  let key = "";
  /** @type {OffscreenCanvas | null} */
  let picture = null;
  return (pen) => {
    const [[left, right], [low, high]] = [range().x.map(Math.log10), range().y.map(Math.log10)];
    const shown = cloud.causes.map((cause) => !chosen.hidden.has(cause.name));
    const theme = document.documentElement.dataset.theme;
    const own = [
      left,
      right,
      low,
      high,
      ...shown,
      pen.width,
      pen.height,
      theme,
      chosen.isOnlyThen && chosen.time,
    ].join();
    if (own !== key || !picture) {
      let count = 0;
      const { x, y } = logs;
      for (let row = 0; row < x.length; row += 1) {
        if (
          x[row] >= left &&
          x[row] <= right &&
          y[row] >= low &&
          y[row] <= high &&
          shown[cloud.cause[row]] &&
          isThen(cloud, row)
        ) {
          rows[count] = row;
          count += 1;
        }
      }
      const across = (/** @type {number} */ row) => (x[row] - left) / (right - left);
      const down = (/** @type {number} */ row) => (high - y[row]) / (high - low);
      const some = rows.subarray(0, count);
      picture = null;
      if (count > MOST_POINTS && !showsGrids(cloud)) {
        const side = CELL * pen.ratio;
        const [wide, high] = [Math.ceil(pen.width / side), Math.ceil(pen.height / side)];
        picture = densityOf(cloud, [wide, high], some, (row) => {
          const cell = Math.min(Math.floor(across(row) * wide), wide - 1);
          return Math.min(Math.floor(down(row) * high), high - 1) * wide + cell;
        });
      }
      if (count <= MOST_POINTS) drawPoints(pen, cloud, some, across, down);
      key = own;
    }
    if (!picture) return;
    const side = CELL * pen.ratio;
    pen.context.imageSmoothingEnabled = false;
    pen.context.drawImage(picture, pen.left, pen.top, picture.width * side, picture.height * side);
  };
}

/**
 * @param {Pen} pen @param {Cloud} cloud @param {Uint32Array} rows
 * @param {(row: number) => number} across @param {(row: number) => number} down
 */
function drawPoints(pen, cloud, rows, across, down) {
  const { context, ratio } = pen;
  const side = (rows.length > 1500 ? 3 : 4) * ratio;
  const colours = cloud.causes.map((cause) => colour(cause.colour));
  context.globalAlpha = 0.8;
  for (const row of rows) {
    context.fillStyle = colours[cloud.cause[row]];
    context.fillRect(
      pen.left + across(row) * pen.width - side / 2,
      pen.top + down(row) * pen.height - side / 2,
      side,
      side,
    );
  }
}

/**
 * Returns a picture with a pixel for each cell, in the colour of the cause that most flows of its rows have.
 * @param {Pick<Cloud, "causes" | "cause" | "weight">} cloud
 * @param {[number, number]} shape
 * @param {Uint32Array} rows
 * @param {(row: number) => number} cellOf
 */
function densityOf({ causes, cause, weight }, [width, height], rows, cellOf) {
  const kinds = causes.length;
  const counts = new Float32Array(width * height * kinds);
  const sums = new Float32Array(width * height);
  for (const row of rows) {
    const cell = cellOf(row);
    counts[cell * kinds + cause[row]] += weight[row];
    sums[cell] += weight[row];
  }
  const most = Math.log1p(ends(sums)[1]);
  const colours = causes.map((one) => rgbOf(colour(one.colour)));
  const picture = new ImageData(width, height);
  for (let cell = 0; cell < sums.length; cell += 1) {
    if (sums[cell] === 0) continue;
    let kind = 0;
    for (let other = 1; other < kinds; other += 1) {
      if (counts[cell * kinds + other] > counts[cell * kinds + kind]) kind = other;
    }
    picture.data.set(colours[kind], 4 * cell);
    picture.data[4 * cell + 3] = 255 * (0.45 + (0.55 * Math.log1p(sums[cell])) / most);
  }
  const canvas = new OffscreenCanvas(width, height);
  /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(picture, 0, 0);
  return canvas;
}

/**
 * Returns red, green and blue of a colour such as `#D55E00`.
 * @param {string} name
 */
const rgbOf = (name) => [1, 3, 5].map((at) => parseInt(name.slice(at, at + 2), 16));
