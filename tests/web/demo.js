// Two frames with the same marks: the first zooms, the second selects.

const COLOURS = ["#0072B2", "#D55E00"];
const names = ["DCTCP", "TIMELY"];
const x = Float64Array.from({ length: 30 }, (_, index) => 10 ** (1 + index / 5));
const y = names.map((_, scheme) => x.map((value) => 1 + (scheme + 1) * Math.log10(value)));
const all = { x: [...x, ...x], y: [...y[0], ...y[1]] };
const group = Array.from(all.x, (_, index) => names[Math.floor(index / x.length)]);
let hidden = new Set();
const opened = [];

/** @returns {Layer[]} */
const schemeLayers = (scheme) => {
  const line = { x, y: y[scheme], colour: COLOURS[scheme] };
  const [low, high] = [0.9, 1.1].map((factor) => y[scheme].map((value) => factor * value));
  const points = pointsLayer({ ...line, shape: "so"[scheme] });
  return [bandLayer({ ...line, low, high }), lineLayer(line), points];
};

const frames = ["linear", "log"].map((scale) => new Frame(find("#content"), {
  label: "slowdown against flow size",
  x: { name: "flow size", scale: "log", range: [8, 1e7], format: bytes },
  y: { name: "slowdown", scale, range: [0.9, 16] },
  height: 220,
  together: "sizes",
  layers: () => [
    ruleLayer({ y: 1, colour: "--ink", dash: [4, 3] }),
    textLayer({ x: 1e3, y: 1, text: "ideal", shift: [0, -8] }),
    ...names.flatMap((name, scheme) => hidden.has(name) ? [] : schemeLayers(scheme)),
  ],
  marks: {
    ...all,
    group,
    isShown: (index) => !hidden.has(group[index]),
    text: (index) => `${group[index]}\n${bytes(all.x[index])}: ${times(all.y[index])}`,
  },
  open: (index) => opened.push(index),
  select: scale === "log" ? () => {} : undefined,
  table: () => ({
    head: ["size", "slowdown"],
    rows: Array.from(all.x, (value, index) => [bytes(value), all.y[index]]),
  }),
}));

const entries = names.map((name, scheme) => ({ name, colour: COLOURS[scheme] }));
legend(find("#content"), entries, (set) => {
  hidden = set;
  frames.forEach((frame) => frame.draw());
});
find("#content").prepend(element("h1", {}, "Demo"));
pageButtons(find("#content"));
Object.assign(window, { frames, opened, number, bytes, seconds, logTicks });
Object.assign(window, { readAddress, writeAddress, Frame, boxesLayer });
