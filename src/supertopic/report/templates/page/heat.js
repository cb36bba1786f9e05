// Topics against classes: effects, weights, shares; and the correlation of topics.

function drawHeat() {
  const what = document.querySelector("input[name=show]:checked").value, table = $("cells"), K = topics.length, T = targets.names.length;
  const sure = k => targets.names.map((_, r) => [r, topics[k].effect.map(row => row[r])]).filter(([, row]) => isSure(row) && row[0] > 0).sort((a, b) => b[1][0] - a[1][0])[0];
  const place = topics.map((_, k) => sure(k)), order = topics.map((_, k) => k).sort((a, b) => (place[a]?.[0] ?? T) - (place[b]?.[0] ?? T) || (place[b]?.[1][0] ?? 0) - (place[a]?.[1][0] ?? 0) || topics[b].share - topics[a].share);
  const columns = what === "correlation" ? order : targets.names.map((_, r) => r), group = data.groups.find(g => g.kind === "class");
  const text = what === "effect" ? effectText : what === "weight" ? (x, r) => signed(x, classes.length ? 1 : weightDigits[r]) : what === "share" ? percent : x => signed(x, 1);
  function cell(k, r) { // value, whether it is sure
    if (what === "correlation") { const v = k === r ? 1 : data.correlation[Math.max(k, r)][Math.min(k, r)]; return [v, k !== r && Math.abs(v) >= 0.1]; }
    if (what === "share") { const v = group?.levels[r]?.share[k] ?? null; return [v, v !== null && v > 1.5 * topics[k].share]; }
    const row = topics[k][what].map(part => part[r]);
    return [row[0], isSure(row)];
  }
  if (what === "share" && !group) { $("heat-note").textContent = "Shares by class need documents whose classes are known."; table.replaceChildren(); return; }
  const values = order.flatMap(k => columns.map(r => cell(k, r))), largest = rows => Math.max(...rows.filter(v => v[1]).map(v => Math.abs(v[0])), 1e-9), most = columns.map(r => largest(apart && what !== "correlation" ? order.map(k => cell(k, r)) : values));
  let n = 0;
  const body = order.map(k => el("tr", {class: k === focusTopic() ? "on" : ""}, el("th", {scope: "row", title: topics[k].best.join(", ")}, el("button", {class: "plain", tabindex: -1, on: {click: () => toggle("topic", k)}}, el("small", {}, k + " "), cut(brief(k), 24))),
    columns.map((r, place) => { const [v, is] = cell(k, r), odd = what !== "correlation" && what !== "share" && contradicts(k).includes(r); n += odd;
      return el("td", {class: "cell " + (is ? (v > 0 ? "towards" : "away") : "unsure") + (state.class !== null && what !== "correlation" && r === targetOf(state.class) ? " on" : ""), "data-k": k, "data-r": r, tabindex: -1, style: is ? {"--part": Math.round(12 + 43 * (Math.abs(v) / most[place]) ** 0.7) + "%"} : null}, v === null ? "" : is || T <= 12 ? text(v, r) : "·", odd && "≠"); })));
  table.className = "grid live" + (what === "correlation" || isWide(targets.names, 90) ? " many" : "");
  table.replaceChildren(el("caption", {}, {effect: "Effect of a tenth more of a topic", weight: "Weight of a topic in the score", share: "Mean share of a topic in the documents of a class; coloured if it is 1.5 times its usual share", correlation: "Correlation of the shares of topics over documents"}[what]),
    el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "topic"), columns.map(r => el("th", {scope: "col"}, el("button", {class: "plain", on: {click: () => what === "correlation" ? toggle("topic", r) : toggle("class", r)}}, what === "correlation" ? `${r} ${cut(brief(r), 16)}` : cut(targets.names[r], 24)))))), el("tbody", {}, body));
  $("heat-note").textContent = n ? `≠ in ${plural(n, "cell")}: weight and effect have different signs. A weight is about one class alone; an effect also depends on the weights for the other classes.` : "";
  gridKeys(table);
}
if ($("heat")) {
  when(["class", "topic", "names", "heat"], drawHeat);
  for (const choice of document.querySelectorAll("input[name=show]")) choice.onchange = drawHeat;
  $("cells").addEventListener("click", event => {
    const at = event.target.closest("td");
    if (!at) return;
    const k = +at.dataset.k, r = +at.dataset.r, correlation = document.querySelector("input[name=show]:checked").value === "correlation";
    set(correlation ? {topic: k} : {topic: k, class: r});
  });
}
