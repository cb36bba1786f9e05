// Where predictions of classes and labels are wrong: a threshold moves everything.

const found = data.evaluation;
let threshold = null; // of a probability, or the least confidence of an answer; null: the model's own choice
const thresholds = {}; // of labels: places in their lists

const ratio = (a, b) => b ? a / b : null;
const f1 = (good, said, is) => said + is ? 2 * good / (said + is) : null;
function saidNow() { // -1: left to people
  if (threshold === null) return found.said;
  return found.p ? found.p.map(p => +(p >= threshold)) : found.said.map((c, i) => found.sure[i] >= threshold ? c : -1);
}
function documentSaid(d) {
  if (threshold === null) return d.said;
  if (found.p) return +(d.p[1] >= threshold);
  const best = [...d.p].sort((a, b) => b - a), sure = found.probabilities ? best[0] : best.length > 1 ? best[0] - best[1] : Math.abs(best[0]);
  return sure >= threshold ? d.said : -1;
}
const labelSaid = (d, j) => thresholds[j] === undefined ? d.said[j] === 1 : d.p[j] >= found.labels[j].thresholds[thresholds[j]];
const labelWrong = (d, j) => d.true !== null && !d.unknown?.includes(j) && labelSaid(d, j) !== d.is.includes(j);
const inCell = (d, is, said) => several ? labelWrong(d, is) && labelSaid(d, is) === (said === 1) : d.is === is && d.true !== null && documentSaid(d) === said;
const isAnswered = d => several || !classes.length || documentSaid(d) >= 0;
function wrongNow(d) { // with the thresholds that are chosen
  if (d.wrong === null || !classes.length) return d.wrong;
  return several ? classes.some((_, j) => labelWrong(d, j)) : threshold === null ? d.wrong : isAnswered(d) && documentSaid(d) !== d.is;
}
function deciding(d, label, n = 6) { // the words that decided: what added most to what is said, for a class against the other one
  const view = label === null ? d.views[0] : d.views.find(v => v.of === classes[label]), said = documentSaid(d);
  if (!view) return [];
  const lowered = data.kind === "grade" ? (said !== d.is && said >= 0 ? said < d.is : view.score < view.base) : binary && said >= 0 && said !== d.said;
  const sign = (label === null ? lowered : !labelSaid(d, label)) ? -1 : 1;
  return [...view.words].map(([w, a, b]) => [data.words[w], sign * (a + b)]).filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]).slice(0, n).map(([w]) => w);
}
function documentLink(d, label) {
  const words = deciding(d, label);
  return el("li", {}, el("button", {class: "plain link", on: {click: () => { set({doc: d.row}); $("reader").scrollIntoView(); }}}, `${called(d)}: ${cut(d.text.trim(), 70)}`), words.length > 0 && el("p", {class: "soft"}, "decided by ", words.join(", ")));
}
function cellDocuments(rows, total, text, label = null) {
  return el("div", {class: "celldocs", "aria-live": "polite"}, el("h3", {}, text), el("p", {class: "soft"}, rows.length ? `${rows.length} of ${plural(total, "document")} are in this page.` : total ? "None of these documents is in this page." : "There are no documents."),
    el("ol", {}, rows.slice(0, 20).map(d => documentLink(d, label))));
}

function drawClasses() {
  const said = saidNow(), L = classes.length, counts = Array.from({length: L}, () => new Array(L + 1).fill(0));
  found.truth.forEach((is, i) => counts[is][said[i] < 0 ? L : said[i]]++);
  const asked = said.some(c => c < 0), columns = [...classes.keys(), ...(asked ? [L] : [])], answered = said.filter(c => c >= 0).length;
  const right = found.truth.filter((is, i) => is === said[i]).length, [is, to] = state.cell === null ? [null, null] : state.cell.split(",").map(Number);
  const table = el("table", {class: "grid" + (isWide(classes, 50) ? " many" : "")}, el("caption", {}, "True classes in rows, predicted ones in columns"), el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "true class \\ predicted class"), columns.map(j => el("th", {scope: "col"}, el("span", {}, j === L ? "nothing" : cut(classes[j], 24)))))),
    el("tbody", {}, counts.map((row, i) => { const total = row.reduce((a, b) => a + b, 0) || 1;
      return el("tr", {class: state.class === i ? "on" : ""}, el("th", {scope: "row"}, cut(classes[i], 28)), columns.map(j => { const n = row[j], at = `${i},${j === L ? -1 : j}`;
        return el("td", {class: "cell " + (n ? i === j ? "towards" : "away" : "") + (state.cell === at ? " chosen" : ""), style: n ? {"--part": Math.round(10 + 45 * n / total) + "%"} : null, tabindex: -1, "aria-label": `${cellText(at)}: ${n}`, on: {click: () => toggle("cell", at)}}, n || "·"); })); })));
  gridKeys(table);
  const sums = classes.map((_, i) => [counts[i][i], counts.reduce((s, row) => s + row[i], 0), counts[i].reduce((a, b) => a + b, 0)]);
  const perClass = el("table", {}, el("caption", {}, "By class"), el("thead", {}, el("tr", {}, ["class", "docs", "precision", "recall", "F1"].map((text, i) => el("th", {scope: "col", class: i ? "number" : ""}, text)))),
    el("tbody", {}, sums.map(([good, called, own], i) => el("tr", {class: state.class === i ? "on" : ""}, el("th", {scope: "row"}, el("button", {class: "plain", "aria-pressed": String(state.class === i), on: {click: () => toggle("class", i)}}, broken(cut(classes[i], 32)))), el("td", {class: "number"}, own.toLocaleString("en")), [ratio(good, called), ratio(good, own), f1(good, called, own)].map((v, j) => el("td", {class: "number"}, j < 2 ? whole(v) : v === null ? "–" : v.toFixed(2)))))));
  $("figures").textContent = answered < said.length ? `${percent(answered / said.length)} of them get an answer, and ${percent(ratio(right, answered))} of these answers are right.` : `${percent(ratio(right, answered))} of the predictions are right.`;
  const cell = is === null ? el("p", {class: "soft"}, "Click a cell to see its documents and the words that mattered most.") : cellDocuments(data.documents.filter(d => inCell(d, is, to)), counts[is]?.[to < 0 ? L : to] ?? 0, `Documents with ${cellText(state.cell)}`);
  replaceScrolled($("confusion"), el("div", {class: "scroll both"}, table));
  $("cell-documents").replaceChildren(cell);
  replaceScrolled($("by-class"), el("div", {class: "scroll tall"}, perClass));
  if (found.p) drawRates(); else if (found.abstention) drawAbstention();
}
const rates = t => { const yes = found.p.map(p => p >= t), good = yes.filter((y, i) => y && found.truth[i]).length, has = found.truth.filter(Boolean).length, called = yes.filter(Boolean).length;
  return {x: (called - good) / (found.truth.length - has || 1), y: good / (has || 1), precision: ratio(good, called), accuracy: found.truth.filter((c, i) => Boolean(c) === yes[i]).length / found.truth.length}; };
function drawRates() {
  const p = plot(`The share of ${classes[1]} that is found, against false alarms`, {x: [0, 1], y: [0, 1], xTitle: `false alarms: share of “${cut(classes[0], 20)}”`, yTitle: `share of “${cut(classes[1], 20)}” that is found`, xText: whole, yText: whole}), t = threshold ?? 0.5, now = rates(t);
  p.segment(0, 0, 1, 1, {class: "guide"});
  p.line([[1, 1], ...Array.from({length: 51}, (_, i) => rates(i / 50)).map(r => [r.x, r.y]), [0, 0]]);
  p.dot(now.x, now.y, {class: "mark", r: 6, id: "dot"});
  $("chosen").textContent = `${t.toFixed(2)}. This finds ${whole(now.y)} of them, with false alarms for ${whole(now.x)} of the others. Precision ${whole(now.precision)}, accuracy ${percent(now.accuracy)}.`;
  $("curve").replaceChildren(figure("Found and false alarms", p.svg));
}
function drawAbstention() {
  const [answered, error, least] = found.abstention, t = threshold ?? -Infinity, most = Math.max(...error, 0.01);
  const p = plot("The share of errors among the most certain predictions", {x: [0, 1], y: [0, most * 1.08], xTitle: `share of the ${several ? "labels" : "documents"} that get an answer`, yTitle: "share of these that is wrong", xText: whole, yText: tick});
  p.line(answered.map((a, i) => [a, error[i]]));
  const at = Math.max(least.findLastIndex(v => v >= t), 0);
  p.dot(answered[at], error[at], {class: "mark", r: 6, id: "dot"});
  if ($("chosen")) $("chosen").textContent = threshold === null ? "every document gets an answer" : `at least ${threshold.toFixed(2)}: ${percent(found.sure.filter(s => s >= threshold).length / found.sure.length)} of the documents get an answer`;
  $("curve").replaceChildren(figure(several ? "If only the surest labels are answered" : "If only the most certain predictions are used", p.svg));
}
function reliabilityPlot(rows, calibration, what) {
  const p = plot("Predicted probability against the observed frequency", {x: [0, 1], y: [0, 1], xTitle: `predicted ${what}`, yTitle: "observed", xText: whole, yText: whole});
  p.segment(0, 0, 1, 1, {class: "guide"});
  for (const row of rows) { p.segment(row.predicted, row.lower, row.predicted, row.upper, {class: "whisker"}); p.dot(row.predicted, row.observed); }
  return figure("Are the probabilities calibrated?", p.svg, el("p", {}, `${calibration.sentence} On average over tenths of the documents, prediction and observation are ${(100 * calibration.gap).toFixed(1)} points apart.`));
}
function layOutClasses() {
  const slider = el("input", {id: "threshold", type: "range", min: 0, max: 100, value: found.p ? 50 : 0, "aria-describedby": "chosen"});
  const top = found.probabilities ? [found.p ? 0 : 1 / classes.length, 1] : [0, [...found.sure].sort((a, b) => a - b)[Math.floor(0.95 * (found.sure.length - 1))]];
  slider.oninput = () => { const part = slider.value / 100; threshold = !found.p && +slider.value === 0 || found.p && +slider.value === 50 ? null : Math.min(top[0] + part * (top[1] - top[0]), top[1] - 1e-9); drawClasses(); show(["threshold"]); };
  $("evaluation").replaceChildren(el("div", {class: "tools"}, (found.p || found.sure) && el("label", {}, found.p ? `predict “${cut(classes[1], 30)}” from a probability of ` : "answer only if sure ", slider), el("output", {id: "chosen"}, "every document gets an answer")),
    el("div", {class: "pair wide-left"}, el("div", {}, el("div", {id: "confusion"}), el("button", {class: "csv", "data-csv": "confusion"}, "CSV"), el("div", {id: "cell-documents"})), el("div", {id: "by-class"})), el("div", {class: "pair"}, el("div", {id: "curve"}), found.reliability && reliabilityPlot(found.reliability, found.calibration, found.p ? `probability of “${cut(classes[1], 20)}”` : "probability of the chosen class"),
    found.figures && found.figures.length > 0 && el("table", {}, el("caption", {}, "Other figures"), el("thead", {}, el("tr", {}, ["", "this model", "base rate"].map(text => el("th", {scope: "col", class: text ? "number" : ""}, text)))), el("tbody", {}, found.figures.map(([what, a, b]) => el("tr", {}, el("th", {scope: "row"}, what), el("td", {class: "number"}, number(a)), el("td", {class: "number"}, number(b)))))), rivalNote()));
  tables.confusion = () => { const said = saidNow(); return classes.flatMap((a, i) => classes.map((b, j) => ({is: a, said: b, documents: found.truth.filter((c, d) => c === i && said[d] === j).length}))); };
}
function rivalNote() {
  const rival = found.rival;
  return rival && el("p", {class: "soft"}, `${rival.name ?? "Another model"}: ` + Object.entries(rival).filter(([key]) => key !== "name").map(([key, v]) => `${key.replaceAll("_", " ").replace("f1", "F1").replace(/^r2$/, "R²")} ${["accuracy"].includes(key) ? percent(v) : number(v)}`).join(", ") + ".");
}

// labels
const labelNow = j => { const label = found.labels[j], at = thresholds[j]; return at === undefined ? label.at : [label.counts[0][at], label.counts[1][at]]; };
function drawLabels() {
  const j = focusClass(), label = found.labels[j], rows = found.labels.map((_, i) => i).sort((a, b) => found.labels[b].has - found.labels[a].has);
  const table = el("table", {}, el("caption", {}, "By label"), el("thead", {}, el("tr", {}, ["label", "docs", "precision", "recall", "F1"].map((text, i) => el("th", {scope: "col", class: i ? "number" : ""}, text)))),
    el("tbody", {}, rows.map(i => { const [good, bad] = labelNow(i), own = found.labels[i].has; return el("tr", {class: i === j ? "on" : ""}, el("th", {scope: "row"}, el("button", {class: "plain", "aria-pressed": String(state.class === i), on: {click: () => toggle("class", i)}}, broken(cut(classes[i], 32)))), el("td", {class: "number"}, own.toLocaleString("en")), el("td", {class: "number"}, whole(ratio(good, good + bad))), el("td", {class: "number"}, whole(ratio(good, own))), el("td", {class: "number"}, f1(good, good + bad, own)?.toFixed(2) ?? "–")); })));
  const sum = rows.reduce((s, i) => { const [good, bad] = labelNow(i); return [s[0] + good, s[1] + bad, s[2] + found.labels[i].has]; }, [0, 0, 0]);
  const single = found.labels.reduce((s, label, i) => { const [good, bad] = labelNow(i); return [s[0] + good + label.documents - label.has - bad, s[1] + label.documents]; }, [0, 0]);
  $("figures").textContent = `Over all labels: micro F1 ${(f1(sum[0], sum[0] + sum[1], sum[2]) ?? 0).toFixed(3)}, precision ${percent(ratio(sum[0], sum[0] + sum[1]))}, recall ${percent(ratio(sum[0], sum[2]))}; ${percent(single[0] / single[1])} of single labels are right` + (Object.keys(thresholds).length ? "." : `, and all labels of ${percent(found.all_right)} of the documents.`);
  replaceScrolled($("by-class"), el("div", {class: "scroll tall"}, table));
  const at = thresholds[j] ?? label.thresholds.findIndex(t => t > (found.probabilities ? 0.5 : 0)), slider = $("threshold"), [good, bad] = labelNow(j);
  slider.value = at;
  $("threshold-of").textContent = `predict “${cut(label.name, 30)}” from a ${found.probabilities ? "probability" : "score"} of `;
  $("chosen").textContent = `${(thresholds[j] === undefined ? (found.probabilities ? 0.5 : 0) : label.thresholds[at]).toFixed(2)}: precision ${whole(ratio(good, good + bad))}, recall ${whole(ratio(good, label.has))}`;
  const p = plot(`Precision and recall of ${label.name}`, {x: [0, 1], y: [0, 1], xTitle: "recall", yTitle: "precision", xText: whole, yText: whole});
  const points = label.counts[0].map((g, i) => [ratio(g, label.has) ?? 0, ratio(g, g + label.counts[1][i])]).filter(([, y]) => y !== null);
  p.line(points);
  if (good + bad) p.dot(ratio(good, label.has) ?? 0, good / (good + bad), {class: "mark", r: 6, id: "dot"});
  const cells = [["missed", label.has - good], ["false alarms", bad]], chosen = state.cell === null ? null : +state.cell.split(",")[1];
  $("label").replaceChildren(el("h3", {}, label.name), el("div", {class: "chips"}, cells.map(([text, n], kind) => el("button", {class: "chip", "aria-pressed": String(chosen === kind), on: {click: () => toggle("cell", `${j},${kind}`)}}, `${text}: ${n}`)), el("span", {class: "soft"}, ` found: ${good} of ${label.has}`)), figure("Precision and recall", p.svg), ...(label.reliability ? [reliabilityPlot(label.reliability, label.calibration, `probability of “${cut(label.name, 20)}”`)] : []),
    ...(chosen !== null && +state.cell.split(",")[0] === j ? [cellDocuments(data.documents.filter(d => inCell(d, j, chosen)), cells[chosen][1], cellText(state.cell), j)] : []));
}
function layOutLabels() {
  const slider = el("input", {id: "threshold", type: "range", min: 0, max: 48, "aria-describedby": "chosen"});
  slider.oninput = () => { thresholds[focusClass()] = +slider.value; drawLabels(); show(["threshold"]); };
  $("evaluation").replaceChildren(el("div", {class: "tools"}, el("label", {}, el("span", {id: "threshold-of"}), slider), el("output", {id: "chosen"})), el("div", {class: "pair"}, el("div", {id: "by-class"}), el("div", {id: "label"}), el("div", {id: "curve"}), rivalNote()));
  if (found.abstention) drawAbstentionOfLabels();
}
function drawAbstentionOfLabels() { const chosen = $("chosen").textContent; drawAbstention(); $("chosen").textContent = chosen; }
