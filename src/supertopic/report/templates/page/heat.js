// Topics against classes: effects, weights, shares; and the correlation of topics.

const COLOURS = "blue if it is positive, orange and underlined if it is negative", SELECT = " Click a heading or the name of a topic to select it.";
const HEAT = { // the caption of each view, and what its colours mean
  effect: ["Effect of a tenth more of a topic", () => `A cell is coloured if its effect is clear, by the rule above: ${COLOURS}.${SELECT}`],
  weight: ["Weight of a topic in the score", () => `A cell is coloured if its weight is clear, by the rule for effects above: ${COLOURS}.${SELECT}`],
  share: ["Mean share of a topic in the documents of a class", () => "A cell is coloured if it is at least 1.5 times the usual share of its topic." + SELECT],
  correlation: ["Correlation of the shares of two topics over the documents of this page", () => `A cell is coloured if it is at least 0.1 in size: ${COLOURS}. Shares of a document sum to 1, so that most correlations are a little negative.${SELECT}`],
};
const heatTitle = $("heat-title")?.textContent;

const heatView = () => document.querySelector("input[name=show]:checked").value;
const chosenBy = r => heatView() === "share" || !single ? r : binary ? 1 : null; // the class that a column selects
function drawHeat() {
  const what = heatView(), table = $("cells"), K = topics.length, T = targets.names.length;
  const sure = k => single ? undefined : targets.names.map((_, r) => [r, topics[k].effect.map(row => row[r])]).filter(([r, row]) => isClear(k, r) && row[0] > 0).sort((a, b) => b[1][0] - a[1][0])[0];
  const place = topics.map((_, k) => sure(k)), order = topics.map((_, k) => k).sort((a, b) => (place[a]?.[0] ?? T) - (place[b]?.[0] ?? T) || (place[b]?.[1][0] ?? 0) - (place[a]?.[1][0] ?? 0) || (single ? effect(b, 1)[0] - effect(a, 1)[0] : 0) || topics[b].share - topics[a].share);
  const names = what === "share" ? classes : targets.names, columns = what === "correlation" ? order : [...names.keys()], group = data.groups.find(g => g.kind === "class");
  const text = what === "effect" ? effectText : what === "weight" ? (x, r) => signed(x, classes.length ? 1 : weightDigits[r]) : what === "share" ? percent : x => Math.abs(x) < 0.005 ? "0.00" : signed(x, 2);
  function cell(k, r) { // value, whether it is sure
    if (what === "correlation") { const v = k === r ? null : data.correlation[Math.max(k, r)][Math.min(k, r)]; return [v, v !== null && Math.abs(v) >= 0.1]; }
    if (what === "share") { const v = group?.levels[r]?.share[k] ?? null; return [v, v !== null && v > 1.5 * topics[k].share]; }
    const row = topics[k][what].map(part => part[r]);
    return [row[0], topics[k][what === "effect" ? "clear" : "clear_weight"].includes(r)];
  }
  $("heat-title").textContent = what === "correlation" ? "Topics against topics" : heatTitle;
  $("heat-text").textContent = HEAT[what][1]();
  if (what === "share" && !group) { $("heat-note").textContent = "Shares by class need documents whose classes are known."; table.replaceChildren(); return; }
  const values = order.flatMap(k => columns.map(r => cell(k, r))), largest = rows => Math.max(...rows.filter(v => v[1]).map(v => Math.abs(v[0])), 1e-9), most = columns.map(r => largest(apart && what !== "correlation" ? order.map(k => cell(k, r)) : values));
  let n = 0;
  const body = order.map(k => el("tr", {class: k === focusTopic() ? "on" : ""}, el("th", {scope: "row", title: topics[k].best.join(", ")}, el("button", {class: "plain", tabindex: -1, on: {click: () => toggle("topic", k)}}, el("small", {}, k + " "), cut(brief(k), 24))),
    columns.map((r, place) => { const [v, is] = cell(k, r), odd = ["effect", "weight"].includes(what) && contradicts(k).includes(r); n += odd;
      return el("td", {class: "cell " + (is ? (v > 0 ? "towards" : "away") : "unsure") + (state.class !== null && what !== "correlation" && r === (what === "share" ? state.class : targetOf(state.class)) ? " on" : ""), "data-k": k, "data-r": r, tabindex: -1, style: is ? {"--part": Math.round(12 + 43 * (Math.abs(v) / most[place]) ** 0.7) + "%"} : null}, v === null ? "" : is || columns.length <= 20 ? text(v, r) : "·", odd && "≠"); })));
  table.className = "grid live" + (what === "correlation" || isWide(names, 90) ? " many" : "");
  table.replaceChildren(el("caption", {}, HEAT[what][0]),
    el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "topic"), columns.map(r => el("th", {scope: "col"}, what !== "correlation" && chosenBy(r) === null ? el("span", {}, cut(names[r], 24)) : el("button", {class: "plain", on: {click: () => what === "correlation" ? toggle("topic", r) : toggle("class", chosenBy(r))}}, what === "correlation" ? `${r} ${cut(brief(r), 16)}` : cut(names[r], 24)))))), el("tbody", {}, body));
  $("heat-note").textContent = n ? `≠ in ${plural(n, "cell")}: weight and effect have different signs. A weight is about one class alone; an effect also depends on the weights for the other classes.` : "";
  gridKeys(table);
}
if ($("heat")) {
  when(["class", "topic", "names", "heat"], drawHeat);
  for (const choice of document.querySelectorAll("input[name=show]")) choice.onchange = drawHeat;
  $("cells").addEventListener("click", event => {
    const at = event.target.closest("td");
    if (!at) return;
    const k = +at.dataset.k, r = +at.dataset.r, own = heatView() === "correlation" ? null : chosenBy(r);
    set(own === null ? {topic: k} : {topic: k, class: own});
  });
}
