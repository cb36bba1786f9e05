// Data, small helpers, and the state that all sections share: class, topic, word, document, and a cell of a table.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id), topics = data.topics, targets = data.targets, classes = data.classes;
const SVG = "http://www.w3.org/2000/svg";

function fill(e, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, f] of Object.entries(value)) e.addEventListener(event, f);
    else if (name === "style") for (const [key, v] of Object.entries(value)) e.style.setProperty(key, v);
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return e;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const draw = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// numbers
const minus = text => text.replace("-", "−").replace("e-", "e−");
const called = d => d.id ?? String(d.row);
const number = x => x === null || x === undefined ? "–" : minus(Math.abs(x) >= 1e5 || (x && Math.abs(x) < 1e-3) ? x.toExponential(1) : String(+x.toPrecision(3)));
const signed = (x, digits = 2) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(digits);
const PERCENT = "\u00a0%"; // lines do not break before it
const percent = p => p === null ? "–" : (p > 0 && p < 0.001 ? "<0.1" : p < 1 && p > 0.999 ? ">99.9" : p === 0 || p === 1 ? 100 * p : (100 * p).toFixed(1)) + PERCENT;
const whole = p => p === null || !Number.isFinite(p) ? "–" : (p > 0 && p < 0.01 ? "<1" : p < 1 && p > 0.99 ? ">99" : Math.round(100 * p)) + PERCENT;
const tick = p => +(100 * p).toPrecision(3) + PERCENT; // of an axis
const digitsFor = most => most > 0 ? Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(most)))) : 0;
const fixed = (x, most = Math.abs(x ?? 0)) => x === null ? "–" : minus(x.toFixed(digitsFor(most))); // with zeros at the end
const apart = !classes.length && !targets.unit && targets.names.length > 1; // several numbers, each in its own unit
const digitsOf = what => targets.names.map((_, t) => digitsFor(Math.max(0, ...topics.flatMap(topic => apart ? topic[what]?.[0][t] ?? 0 : topic[what]?.[0] ?? 0).map(Math.abs))));
const effectDigits = digitsOf("effect"), weightDigits = digitsOf("weight");
function effectText(x, t = 0) { // in the unit of the target
  if (targets.unit !== "points") return x === 0 ? "0" : signed(x, effectDigits[t]);
  return Math.abs(x) < 0.05 ? "0.0" : signed(x, 1);
}
function range(a, b, text) {
  const [low, high] = [text(a), text(b)];
  if (low === high) return /^[<>]/.test(low) ? low : "about " + low;
  return (high.endsWith(PERCENT) ? low.replace(PERCENT, "") : low) + " to " + high;
}
const cut = (text, n) => text.length <= n ? text : text.slice(0, n - 1) + "…";
const broken = text => text.split(/(?<=[./_-])(?=.)/).flatMap(part => [part, el("wbr")]); // long names break at dots
const plural = (n, what) => n.toLocaleString("en") + " " + what + (n === 1 ? "" : "s");

// topics and targets
const single = targets.names.length === 1, binary = single && classes.length === 2;
const several = data.kind === "labels", choices = classes.length ? classes : targets.names;
const targetOf = c => single ? 0 : Math.min(c, Math.max(targets.names.length - 1, 0));
const name = k => topics[k].name;
const brief = k => cut(name(k).split(", ").slice(0, 2).join(", "), 30);
function effect(k, c = focusClass()) { // [mean, lower, upper]; of the first of two classes it is the other way round
  const t = targetOf(c), [m, lo, hi] = (topics[k].effect || [[], [], []]).map(row => row[t]);
  return m === undefined ? null : binary && c === 0 ? [-m, -hi, -lo] : [m, lo, hi];
}
const isClear = (k, t) => !!topics[k].clear?.includes(t); // by the rule of `Targets.clear`, which all of the page follows
function pullText(k) {
  const t = topics[k].pull;
  if (t === null) return "";
  const m = topics[k].effect[0][t];
  if (binary) return "→ " + classes[m > 0 ? 1 : 0];
  return (m < 0 ? "↓ " : single ? "↑ " : "→ ") + (data.kind === "grade" ? data.what : targets.names[t]);
}

// state
const state = {class: null, topic: null, word: "", doc: null, beside: null, cell: null, which: "", search: ""};
const views = []; // [keys, draw]
const when = (keys, f) => views.push([keys, f]);
const focusClass = () => state.class ?? (binary ? 1 : data.start);
const firstTopic = () => topics.map((_, k) => k).sort((a, b) => importance(b) - importance(a))[0] ?? 0;
const importance = k => { const row = targets.names.length ? effect(k) : null; return row ? (isClear(k, targetOf(focusClass())) ? 1e6 : 0) + Math.abs(row[0]) : topics[k].share; };
const focusTopic = () => state.topic ?? firstTopic();
function show(keys) { keepFocus(() => { for (const [wanted, f] of views) if (wanted.some(key => keys.includes(key))) f(); }); }
function keepFocus(draw) { // a button or a cell that is drawn again keeps the focus of the keyboard
  const at = document.activeElement, home = at?.closest(".live");
  if (!home || !at.matches("button, td")) { draw(); return; }
  const key = e => [e.dataset.topic, e.dataset.k, e.dataset.r, e.dataset.k === undefined && (e.getAttribute("aria-label") ?? e.textContent)].join("\n");
  const alike = () => [...home.querySelectorAll(at.tagName)].filter(e => key(e) === own), own = key(at), place = alike().indexOf(at);
  draw();
  if (!at.isConnected) (alike()[place] ?? alike()[0] ?? home.querySelector("button"))?.focus({preventScroll: true});
}
function replaceScrolled(box, child) { // what scrolls stays where it is
  const {scrollLeft = 0, scrollTop = 0} = box.firstElementChild ?? {};
  box.replaceChildren(child);
  Object.assign(child, {scrollLeft, scrollTop});
}
function set(changes, push = true) {
  const keys = Object.keys(changes).filter(key => state[key] !== changes[key]);
  if (!keys.length) return;
  Object.assign(state, changes);
  const address = "#" + Object.entries(state).filter(([, v]) => v !== null && v !== "").map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&");
  try { history[push ? "pushState" : "replaceState"](null, "", address); } catch { /* a page inside a page has no address */ }
  show(keys);
}
const toggle = (key, value, empty = null) => set({[key]: state[key] === value ? empty : value});
function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1)), whole = (key, n) => {
    const value = asked.get(key);
    return value !== null && /^\d+$/.test(value) && +value < n ? +value : null; };
  const row = key => { const i = data.documents.findIndex(d => String(d.row) === asked.get(key)); return i < 0 ? null : data.documents[i].row; };
  const [, is, said] = (asked.get("cell") ?? "").match(/^(\d+),(-?\d+)$/) ?? [], [least, most] = several ? [0, 1] : [-1, classes.length - 1];
  const cell = data.evaluation && is < classes.length && said >= least && said <= most ? `${+is},${+said}` : null;
  return {class: whole("class", choices.length), topic: whole("topic", topics.length), word: asked.get("word") ?? "", doc: row("doc"), beside: row("beside"), cell,
    which: targets.names.length && ["wrong", "unsure"].includes(asked.get("which")) ? asked.get("which") : "", search: asked.get("search") ?? ""};
}

// what is filtered, in words
when(["class", "topic", "word", "cell", "which", "search", "names"], () => {
  const chip = (key, text, empty = null) => el("button", {class: "chip", "aria-label": `remove the filter ${text}`, on: {click: () => set({[key]: empty})}}, text, el("b", {"aria-hidden": "true"}, " ×"));
  const chips = [];
  if (state.class !== null) chips.push(chip("class", cut(choices[state.class], 40)));
  if (state.topic !== null) chips.push(chip("topic", `topic ${state.topic} ${brief(state.topic)}`));
  if (state.word) chips.push(chip("word", `“${cut(state.word, 40)}”`, ""));
  if (state.cell !== null) chips.push(chip("cell", cellText(state.cell)));
  if (state.which) chips.push(chip("which", `${state.which} predictions`, ""));
  if (state.search) chips.push(chip("search", `texts with “${cut(state.search, 40)}”`, ""));
  if (chips.length > 1) chips.push(el("button", {class: "chip all", on: {click: () => set({class: null, topic: null, word: "", cell: null, which: "", search: ""})}}, "remove all"));
  $("filters").replaceChildren(...(chips.length ? ["Selected: ", ...chips] : []));
});
const cellText = cell => { const [is, said] = cell.split(",").map(Number); return several ? `“${choices[is]}”: ${["missed", "false alarms"][said]}` : `true class “${choices[is]}”, ${said < 0 ? "no answer" : `predicted “${choices[said]}”`}`; };

// files
function download(text, file, kind) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], {type: kind}));
  a.download = file;
  a.click();
  URL.revokeObjectURL(a.href);
}
const tables = {
  topics: () => topics.map((t, k) => ({topic: k, name: t.name, words: t.best.join(", "), share: t.share, exclusivity: t.exclusivity, chains: t.chains})),
  effects: () => topics.flatMap((t, k) => targets.names.map((column, r) => ({topic: k, name: t.name, column, effect: t.effect[0][r], lower: t.effect[1][r], upper: t.effect[2][r], clear: isClear(k, r),
    ...(t.weight ? {weight: t.weight[0][r], weight_lower: t.weight[1][r], weight_upper: t.weight[2][r]} : {})}))),
  documents: () => data.documents.flatMap(d => d.views ? d.views.flatMap(v => v.words.map(([w, a, b]) => ({document: called(d), of: v.of, against: v.against ?? "", word: data.words[w], through_topics: a, direct: b})))
    : d.topics.map(([k, share]) => ({document: called(d), topic: k, name: name(k), share}))),
  groups: () => data.groups.flatMap(g => g.levels.flatMap(level => level.share.map((share, k) => ({by: g.name, group: level.name, documents: level.documents, topic: k, name: name(k), share: share ?? "", half_width: level.half[k] ?? ""})))),
};
// a spreadsheet would run text that begins like a formula
const safe = v => typeof v !== "number" && /^[=+\-@\t\r＝＋－＠]/.test(String(v)) ? "'" + v : String(v);
const csvCell = v => /[",\r\n]/.test(safe(v)) ? `"${safe(v).replaceAll('"', '""')}"` : safe(v);
const csv = rows => [Object.keys(rows[0] || {}), ...rows.map(row => Object.values(row))].map(row => row.map(csvCell).join(",")).join("\n") + "\n";
document.addEventListener("click", event => {
  const button = event.target.closest("[data-csv]");
  if (button) download(csv(tables[button.dataset.csv]()), button.dataset.csv + ".csv", "text/csv");
});
function savePage() { // with the names that were given, and without what scripts have drawn
  putCardHome();
  const copy = document.documentElement.cloneNode(true);
  for (const live of copy.querySelectorAll(".live")) live.replaceChildren();
  copy.querySelector("#data").textContent = JSON.stringify(data).replaceAll("<", "\\u003c");
  for (const select of copy.querySelectorAll("#class, #grouping")) select.replaceChildren();
  download("<!doctype html>\n" + copy.outerHTML, (document.title || "report").replace(/\W+/g, "-") + ".html", "text/html");
}
function rename(k, text) {
  topics[k].name = text.trim() || topics[k].best.slice(0, 3).join(", ") || `topic ${k}`;
  show(["names"]);
}
