// Small pictures: dots with intervals on a common axis, bars, and plots with axes.

function ticks(low, high, n = 4) {
  const step0 = (high - low || 1) / n, power = 10 ** Math.floor(Math.log10(step0));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= step0 * 0.999), found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(+(i * step).toPrecision(12));
  return found;
}
function scaleOf(rows) { // of intervals, 0 among them
  const ends = rows.flatMap(row => [row[0], row[1], row[2]]).filter(Number.isFinite);
  let low = Math.min(0, ...ends), high = Math.max(0, ...ends);
  if (low === high) high = 1;
  const pad = 0.06 * (high - low);
  low = low < 0 ? low - pad : 0; high = high > 0 ? high + pad : 0;
  return {low, high, at: v => 100 * (v - low) / (high - low)};
}
function track(row, scale, clear) { // a dot with its interval
  const [m, lo, hi] = row, kind = (m > 0 ? "towards" : "away") + (clear ? "" : " unsure");
  return el("span", {class: "track"}, el("i", {class: "zero", style: {left: scale.at(0) + "%"}}),
    targets.intervals && el("i", {class: "bar " + kind, style: {left: scale.at(lo) + "%", width: scale.at(hi) - scale.at(lo) + "%"}}),
    el("i", {class: "dot " + kind, style: {left: scale.at(m) + "%"}}));
}
const someTicks = (low, high, n) => [n, n + 1, n + 2].map(m => ticks(low, high, m)).find(found => found.length > 1) ?? ticks(low, high, n); // 0 alone is no axis
const axis = (scale, n = 3) => el("span", {class: "axis track", "aria-hidden": "true"}, someTicks(scale.low, scale.high, n).map(v => el("span", {style: {left: scale.at(v) + "%"}}, number(v))));
function trackRow(label, row, scale, clear, attributes, title, t = 0) {
  return el("button", {class: "row", title, "aria-label": `${label}: ${effectText(row[0], t)} ${targets.unit}` + (targets.intervals ? `, 90${PERCENT} interval ${effectText(row[1], t)} to ${effectText(row[2], t)}` : ""), ...attributes},
    el("span", {class: "label"}, label), track(row, scale, clear), el("span", {class: "value" + (row[0] < 0 ? " less" : "")}, effectText(row[0], t)));
}
function bars(rows, most, text) { // [label, value, click, title]
  return el("div", {class: "bars"}, rows.map(([label, value, click, title, other]) => el(click ? "button" : "div", {class: "barrow", title, on: click ? {click} : null}, el("span", {class: "label"}, label),
    el("span", {class: "beam"}, el("i", {style: {width: 100 * Math.max(value ?? 0, 0) / (most || 1) + "%"}}), other !== undefined && el("i", {class: "second", style: {width: 100 * other / (most || 1) + "%"}})), el("span", {class: "value"}, text(value)))));
}

const isWide = (names, most) => names.length > 7 || names.reduce((s, n) => s + Math.max(n.length, 6), 0) > most; // headings are turned

class Plot { // axes with ticks and titles; x and y are functions from numbers to places
  constructor(svg, {width = 340, height = 300, x, y, xTitle, yTitle, xText = number, yText = number, left = 60, n = 5}) {
    Object.assign(this, {svg, width, height, left});
    const right = width - 24, top = 10, bottom = height - 44;
    this.x = v => left + (right - left) * (v - x[0]) / (x[1] - x[0] || 1);
    this.y = v => bottom - (bottom - top) * (v - y[0]) / (y[1] - y[0] || 1);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(draw("rect", {class: "frame", x: left, y: top, width: right - left, height: bottom - top}));
    for (const v of ticks(...x, n)) this.add("line", {class: "gridline", x1: this.x(v), x2: this.x(v), y1: top, y2: bottom}), this.add("text", {x: this.x(v), y: bottom + 15, "text-anchor": "middle"}, xText(v));
    for (const v of ticks(...y, n)) this.add("line", {class: "gridline", x1: left, x2: right, y1: this.y(v), y2: this.y(v)}), this.add("text", {x: left - 6, y: this.y(v) + 4, "text-anchor": "end"}, yText(v));
    this.add("text", {class: "title", x: (left + right) / 2, y: height - 8, "text-anchor": "middle"}, xTitle);
    this.add("text", {class: "title", x: 12, y: (top + bottom) / 2, transform: `rotate(-90 12 ${(top + bottom) / 2})`, "text-anchor": "middle"}, yTitle);
  }
  add(name, attributes, text) { const e = draw(name, attributes, text ?? null); this.svg.append(e); return e; }
  line(points, attributes = {}) { return this.add("polyline", {class: "curve", points: points.map(([a, b]) => `${this.x(a).toFixed(1)},${this.y(b).toFixed(1)}`).join(" "), ...attributes}); }
  segment(a, b, c, d, attributes = {}) { return this.add("line", {x1: this.x(a), y1: this.y(b), x2: this.x(c), y2: this.y(d), ...attributes}); }
  dot(a, b, attributes = {}) { return this.add("circle", {cx: this.x(a), cy: this.y(b), r: 4, ...attributes}); }
}
const plot = (label, options) => { const svg = draw("svg", {class: "plot", role: "img", "aria-label": label}); return new Plot(svg, options); };
const figure = (caption, svg, ...more) => el("figure", {}, el("figcaption", {}, caption), svg, ...more);

function gridKeys(table) { // arrow keys move between the cells of a table, Enter clicks
  const cells = () => [...table.tBodies[0].rows].map(row => [...row.querySelectorAll("td")]);
  const first = table.querySelector("td");
  if (first) first.tabIndex = 0;
  table.onkeydown = event => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key], at = event.target.closest("td");
    if (!at) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); at.click(); }
    if (!step) return;
    const rows = cells(), i = rows.findIndex(row => row.includes(at)), next = rows[i + step[0]]?.[rows[i].indexOf(at) + step[1]];
    if (next) { event.preventDefault(); at.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  };
}
