// The reader: a list of documents with filters, and what adds up to the prediction of one or two of them.

const documents = data.documents, graded = !classes.length || data.kind === "grade"; // more or less, and no class to choose
const hasText = (d, part) => !part || d.text.toLowerCase().includes(part.toLowerCase());
const wordsIn = text => [...text.toLowerCase().matchAll(/[\p{L}\p{N}_]+|[!?]/gu)], joined = words => ` ${words.map(w => w[0]).join(" ")} `;
const tokens = documents.map(d => joined(wordsIn(d.text))), placeOfDocument = new Map(documents.map((d, i) => [d, i]));
let asked = {word: "", key: "", whole: false};
function hasWord(d, word) { // as a whole; as a part of texts if no document has it so, as in languages without spaces
  if (!word) return true;
  if (asked.word !== word) { const key = joined(wordsIn(word)); asked = {word, key, whole: key.trim() !== "" && tokens.some(text => text.includes(key))}; }
  return asked.whole ? tokens[placeOfDocument.get(d)].includes(asked.key) : hasText(d, word);
}
function filtered() {
  return documents.filter(d => (!state.which || (state.which === "wrong" ? wrongNow(d) : d.unsure)) && hasText(d, state.search) && hasWord(d, state.word)
    && (state.class === null || !classes.length || classOf(d).includes(state.class)) && (state.topic === null || d.topics.some(([k]) => k === state.topic))
    && (state.cell === null || inCell(d, ...state.cell.split(",").map(Number))));
}
const classOf = d => several ? classes.map((_, j) => j).filter(j => labelSaid(d, j) || d.is.includes(j)) : [documentSaid(d), d.is];
const answer = d => !d.predicted ? "" : several ? classes.filter((_, j) => labelSaid(d, j)).join(", ") || "no label" : classes.length ? classes[documentSaid(d)] ?? "no answer" : d.predicted.map(row => fixed(row[1])).join(", ");
const current = () => { const list = filtered(); return list.find(d => d.row === state.doc) ?? list.find(d => d.row === data.first) ?? list[0] ?? null; };
function drawReader() {
  const list = filtered(), now = current();
  $("no-document").textContent = list.length ? `${plural(list.length, "document")}` : "No document of this page matches. Remove a filter.";
  $("documents").replaceChildren(...list.map(d => el("li", {}, el("button", {class: "entry", tabindex: d === now ? 0 : -1, "aria-current": d === now ? "true" : null, on: {click: () => set({doc: d.row})}},
    el("span", {class: "head"}, el("small", {}, called(d)), " ", el("b", {}, cut(answer(d), 40)), d.true !== null && d.true !== undefined && (wrongNow(d) ? el("span", {class: "wrong"}, ` ✗ is ${cut(d.true, 40)}`) : classes.length && isAnswered(d) ? el("span", {class: "right"}, " ✓") : el("span", {class: "soft"}, ` is ${d.true}`)), d.other?.[1] && el("span", {class: "soft"}, ` other model: ${cut(d.other[0], 30)}`)), el("span", {class: "start"}, cut(d.text.trim(), 90) || "(empty)")))));
  const second = documents.find(d => d.row === state.beside);
  $("panes").className = "live" + (second ? " two" : "");
  $("panes").replaceChildren(...(now ? [pane(now, false)] : []), ...(second ? [pane(second, true)] : []));
  const chosen = $("documents").querySelector("[aria-current]");
  if (chosen) $("documents").scrollTop = chosen.offsetTop - $("documents").offsetTop - 60;
}
function move(by) {
  const list = filtered(), i = list.indexOf(current()), next = list[i + by], inside = $("documents").contains(document.activeElement);
  if (next) set({doc: next.row}, false);
  if (inside) $("documents").querySelector("[aria-current]")?.focus({preventScroll: true});
}
const viewOf = {}; // which view of a document is shown
function pane(d, second) {
  const view = d.views?.[Math.min(viewOf[d.row] ?? 0, d.views.length - 1)], title = el("h3", {}, `Document ${called(d)}`);
  const buttons = el("div", {class: "tools"}, second ? el("button", {on: {click: () => set({beside: null})}}, "close") : state.beside === d.row ? null : el("button", {on: {click: () => set({beside: d.row})}}, "keep it beside"));
  const parts = [el("div", {class: "tools"}, title, buttons)];
  if (d.predicted) parts.push(el("p", {class: "finding"}, finding(d)));
  if (d.views?.length > 1) parts.push(el("div", {class: "chips", role: "group", "aria-label": "What is explained"}, d.views.map((v, i) => el("button", {class: "chip", "aria-pressed": String(v === view), on: {click: () => { viewOf[d.row] = i; keepFocus(drawReader); }}}, v.of + (v.against ? ` against ${v.against}` : "")))));
  parts.push(view ? el("p", {class: "keys soft"}, el("mark", {style: {"--part": "40%"}}, graded ? "raises" : "towards"), " ", el("mark", {class: "less", style: {"--part": "40%"}}, graded ? "lowers" : "away from"), ` ${view.of}${view.against ? ` against ${view.against}` : ""}`)
    : state.topic !== null || topics.length ? el("p", {class: "keys soft"}, el("mark", {style: {"--part": "40%"}}, "words"), ` of topic ${brief(focusTopic())}`) : null);
  parts.push(el("div", {class: "text", tabindex: 0, role: "region", "aria-label": `text of document ${called(d)}`}, view ? explained(d.text, view) : topics.length ? marked(d.text, strengthOf(focusTopic())) : d.text));
  if (view) parts.push(figure(`What adds up to the ${classes.length ? "score" : "prediction"} for ${explainedBy(view)}`, waterfall(view)), el("p", {class: "sum soft"}, sumText(view)));
  parts.push(el("p", {}, "Topics: ", d.topics.length ? d.topics.map(([k, share]) => el("button", {class: "chip", "aria-pressed": String(state.topic === k), on: {click: () => toggle("topic", k)}}, `${k} ${brief(k)} ${percent(share)}`)) : "none of any size"));
  return el("article", {}, ...parts.flat());
}
function finding(d) {
  const said = d.predicted.map(([what, v, a, b]) => { const most = Math.max(...[v, a, b].map(Math.abs)), text = x => data.probabilities ? percent(x) : fixed(x, most); return `${classes.length || d.predicted.length > 1 || data.kind === "time" ? what + (/\d$/.test(what) ? ":" : "") : "predicted"} ${text(v)}` + (a !== b && new Set([v, a, b].map(text)).size > 1 ? ` (${range(a, b, text)})` : ""); }).join(", ");
  const judged = isAnswered(d) && (classes.length || found?.kind === "numbers"), many = d.predicted.length > 1;
  const inside = classes.length ? "" : wrongNow(d) ? (many ? ", and not all are inside their" : ", outside the") + ` 90${PERCENT} interval${many ? "s" : ""}` : (many ? ", inside their" : ", inside the") + ` 90${PERCENT} interval${many ? "s" : ""}`;
  return [said, d.true === null || d.true === undefined ? "" : !judged ? ` it is ${d.true}` : el("b", {class: wrongNow(d) ? "wrong" : "right"}, ` ${wrongNow(d) ? "✗" : "✓"} ${many && !classes.length ? "they are" : "it is"} ${d.true}${inside}`), d.other ? ` · the other model predicts ${d.other[0]}` : ""];
}
function explained(text, view) {
  const adds = new Map(view.words.map(([w, a, b]) => [data.words[w], a + b])), most = Math.max(1e-9, ...[...adds.values()].map(Math.abs));
  const parts = text.split(/([\p{L}\p{N}_]+|[!?])/u), word = i => (parts[i] ?? "").toLowerCase(), pair = i => (adds.get(`${word(i)} ${word(i + 2)}`) ?? 0) / 2;
  return parts.map((part, i) => {
    const own = adds.get(word(i)) ?? adds.get(part), value = (own ?? 0) + (i % 2 ? pair(i) + pair(i - 2) : 0);
    if (!part || i % 2 === 0 || (own === undefined && !value)) return part;
    return el("mark", {class: value < 0 ? "less" : "", title: signed(value, digitsFor(most)), "data-word": word(i), style: {"--part": Math.round(8 + 47 * Math.min(Math.abs(value) / most, 1)) + "%"}}, part);
  });
}
const MOST_BARS = 12;
const levelOf = view => { const level = view.constant - view.base; return Math.abs(level) > 0.0005 * Math.max(Math.abs(view.base), Math.abs(view.score)) ? level : 0; };
function barsOf(view) { // [name, through topics, directly, lower, upper]
  const shown = view.words.slice(0, MOST_BARS), left = view.words.slice(MOST_BARS), others = left.length + view.rest[0];
  const rest = left.reduce((s, [, a, b]) => [s[0] + a, s[1] + b], [view.rest[1], view.rest[2]]);
  return [["base rate", 0, view.base], ...(levelOf(view) ? [["level", 0, levelOf(view)]] : []), ...view.beside.map(([what, v]) => [what, 0, v]), ...shown.map(([w, a, b], i) => [data.words[w], a, b, ...(view.spans[i] ?? [])]), ...(others ? [[plural(others, "other word"), rest[0], rest[1]]] : [])];
}
const explainedBy = view => `“${view.of}”${view.against ? ` against “${view.against}”` : ""}`;
const sumText = view => { const total = barsOf(view).reduce((s, [, a, b]) => s + a + b, 0); return `For ${explainedBy(view)}: ${plural(barsOf(view).length, "part")} ${barsOf(view).length === 1 ? "adds" : "add"} up to ${number(total)}; the model's score is ${number(view.score)}.` + (levelOf(view) ? ` The level is the constant with which predictions are right on average${data.kind === "count" ? ", and the exposure if there is one" : ""}. In the tables of “explain” the base rate and the level together are the intercept.` : " In the tables of “explain” the base rate is the intercept."); };
const paneWidth = () => $("panes").clientWidth / ($("panes").classList.contains("two") && innerWidth > 900 ? 2 : 1);
function waterfall(view) { // from the base rate to the score; a score of classes has its zero, where the decision changes
  const [[, , base], ...rows] = barsOf(view), spans = []; let at = base;
  for (const [label, a, b, lo, hi] of rows) { spans.push({label, from: at, a, b, lo: lo === undefined ? null : at + lo, hi: hi === undefined ? null : at + hi, to: at + a + b}); at += a + b; }
  const ends = [base, at, ...(classes.length ? [0] : []), ...spans.flatMap(s => [s.from, s.to, s.from + s.a, s.lo ?? s.to, s.hi ?? s.to])], low = Math.min(...ends), high = Math.max(...ends), pad = 0.04 * (high - low) || 0.5;
  const narrow = paneWidth() < 560, [left, right, width] = narrow ? [112, 300, 360] : [150, 560, 620], step = 20, bottom = step * (spans.length + 2) + 6, x = v => left + (right - left) * (v - low + pad) / (high - low + 2 * pad), digits = digitsFor(Math.max(0, ...rows.map(([, a, b]) => Math.abs(a + b))));
  const svg = draw("svg", {class: "waterfall", role: "img", viewBox: `0 0 ${width} ${bottom + 40}`, "aria-label": `Bars from the base rate, ${number(base)}, to ${number(at)}`});
  const texts = [], text = (label, px, y, more) => texts.push(draw("text", {x: px, y, ...more}, label)), end = {"text-anchor": "end"}, middle = {"text-anchor": "middle"};
  const rounded = v => digitsFor(Math.abs(v)) <= digits ? number(v) : minus(String(+v.toFixed(digits))); // no digits that no part has
  for (const v of ticks(low - pad, high + pad, narrow ? 3 : 6)) { svg.append(draw("line", {class: v === 0 && classes.length ? "zero" : "gridline", x1: x(v), x2: x(v), y1: 0, y2: bottom})); text(number(v), x(v), bottom + 14, middle); }
  svg.append(draw("line", {class: "guide", x1: x(base), x2: x(base), y1: 4, y2: bottom}), draw("circle", {class: "base", cx: x(base), cy: 10, r: 4}));
  text("base rate", left - 8, 14, end);
  text(rounded(base), x(base) + 8, 14, {class: "base"});
  spans.forEach((s, i) => {
    const y = step * (i + 1) + 4, kind = s.a + s.b < 0 ? "away" : "towards";
    text(cut(s.label, narrow ? 16 : 22), left - 8, y + 10, end);
    svg.append(draw("rect", {class: kind, x: Math.min(x(s.from), x(s.to)), width: Math.max(1, Math.abs(x(s.from) - x(s.to))), y, height: 12, rx: 1.5}));
    if (s.a) svg.append(draw("rect", {class: "through " + (s.a < 0 ? "away" : "towards"), x: Math.min(x(s.from), x(s.from + s.a)), width: Math.max(0.5, Math.abs(x(s.from + s.a) - x(s.from))), y: y + 3, height: 6}));
    if (s.lo !== null) svg.append(draw("line", {class: "whisker", x1: x(s.lo), x2: x(s.hi), y1: y + 6, y2: y + 6}));
    text(signed(s.a + s.b, digits), x(Math.max(s.from, s.to, s.from + s.a, s.hi ?? s.to)) + 5, y + 10, {class: s.a + s.b < 0 ? "less" : ""});
    svg.append(draw("line", {class: "link", x1: x(s.from), x2: x(s.from), y1: y - 8, y2: y}));
  });
  const last = step * (spans.length + 1), title = {class: "title"};
  text("total", left - 8, last + 14, {...title, ...end});
  svg.append(draw("circle", {class: "mark", cx: x(at), cy: last + 10, r: 4}));
  text(rounded(at), x(at) + 8, last + 14, title);
  const unit = classes.length ? (data.probabilities ? "log-odds" : "score") : data.kind === "time" || data.kind === "count" ? "score" : view.of;
  text(cut(unit, narrow ? 10 : 40) + (narrow ? " · thin: through topics, thick: all" : " · thin bars: through topics, thick bars: topics and direct weights together"), narrow ? width / 2 : (left + right) / 2, bottom + 32, {...title, ...middle});
  svg.append(...texts); // above all marks
  return svg;
}
when(["class", "topic", "word", "doc", "beside", "cell", "which", "search", "names", "threshold"], drawReader);
$("main").addEventListener("click", event => { const mark = event.target.closest("mark[data-word]"); if (mark) toggle("word", mark.dataset.word, ""); });
$("search").oninput = () => set({search: $("search").value.trim()}, false);
when(["search"], () => { if ($("search").value.trim() !== state.search) $("search").value = state.search; });
for (const choice of document.querySelectorAll("input[name=which]")) {
  choice.onchange = () => set({which: choice.value === "all" ? "" : choice.value});
  when(["which"], () => { choice.checked = choice.value === (state.which || "all"); });
}
$("documents").onkeydown = event => {
  const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (by) { event.preventDefault(); move(by); }
};
$("before").onclick = () => move(-1);
$("after").onclick = () => move(1);
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=radio]):not([type=range]), select, textarea")) return;
  const by = {j: 1, k: -1}[event.key.toLowerCase()];
  if (by) { event.preventDefault(); move(by); }
});
if ($("class")) {
  $("class").append(el("option", {value: ""}, "all"), ...classes.map((c, i) => el("option", {value: i}, cut(c, 40))));
  $("class").onchange = () => set({class: $("class").value === "" ? null : +$("class").value});
  when(["class"], () => { $("class").value = state.class ?? ""; });
}
