// What drives each class, the map of topics, their list, and the card of one.

const MANY_PANELS = 12;
const card = $("card"), putCardHome = () => { if (!card.parentElement?.matches(".split")) document.querySelector("#topics .split").append(card); };
const changeOf = t => targets.unit === "points" ? "change in points" : `change${targets.unit ? ` in ${targets.unit}` : apart || single ? ` of “${cut(data.kind === "grade" ? data.what : targets.names[t], 18)}”` : ""}`;
let allPanels = false;
function drawDrivers() {
  const order = targets.names.map((_, t) => t), size = t => data.groups.find(g => g.kind === "class")?.levels[t]?.documents ?? 0;
  if (classes.length && !single) order.sort((a, b) => size(b) - size(a));
  if (state.class !== null && order.length > 1) order.sort((a, b) => (b === targetOf(state.class)) - (a === targetOf(state.class)));
  const most = targets.names.length > 3 ? 5 : targets.names.length > 1 ? 8 : 14, shown = allPanels ? order : order.slice(0, MANY_PANELS);
  const rowsOf = t => topics.map((topic, k) => [k, topic.effect.map(row => row[t])]).filter(([k]) => !targets.intervals || isClear(k, t)).sort((a, b) => Math.abs(b[1][0]) - Math.abs(a[1][0])).slice(0, most);
  const panels = shown.map(t => [t, rowsOf(t).sort((a, b) => b[1][0] - a[1][0])]);
  const together = scaleOf(panels.flatMap(([, rows]) => rows.map(([, row]) => row))), scales = panels.map(([, rows]) => apart ? scaleOf(rows.map(([, row]) => row)) : together);
  putCardHome();
  $("panels").className = "live" + (order.length === 1 ? " one" : "");
  $("panels").replaceChildren(...panels.map(([t, rows], i) => el("div", {class: "panel" + (state.class !== null && t === targetOf(state.class) && !single ? " on" : "")},
    el("h3", {}, classes.length && !single ? el("button", {class: "plain", "aria-pressed": String(state.class === t), on: {click: () => toggle("class", t)}}, targets.names[t])
      : binary ? `← ${classes[0]} | ${classes[1]} →` : data.kind === "grade" ? "← lower | higher →" : targets.names[t],
    el("small", {}, ` The base rate ${binary ? `of “${classes[1]}” ` : ""}is ${targets.unit === "points" ? percent(targets.before[t]) : number(targets.before[t])}.`)),
    rows.length ? rows.map(([k, row]) => trackRow(brief(k), row, scales[i], isClear(k, t), {"data-topic": k, "aria-pressed": String(state.topic === k), on: {click: () => set(single || !classes.length ? {topic: k} : {topic: k, class: t})}}, topics[k].best.join(", "), t))
      : el("p", {class: "soft"}, "No topic has a clear effect."),
    rows.length > 0 && el("div", {class: "row foot"}, el("span", {class: "label"}, changeOf(t)), axis(scales[i], single ? 3 : 2), el("span", {class: "value"})))));
  const row = state.topic !== null && !$("topics").offsetParent && [...$("panels").querySelectorAll(`button.row[data-topic="${state.topic}"]`)].find(e => e.closest(".panel.on") || single || state.class === null);
  if (row) row.after(card); // on a phone, whose section of topics is folded
  if (order.length > MANY_PANELS) $("panels").append(el("button", {class: "wide", on: {click: () => { allPanels = !allPanels; drawDrivers(); }}}, allPanels ? "show fewer" : `show all ${order.length}`));
}
if (targets.names.length) when(["class", "topic", "names"], drawDrivers);

const matching = () => { const asked = [$("find").value.trim().toLowerCase(), state.word.toLowerCase()].filter(Boolean);
  return topics.map((_, k) => k).filter(k => asked.every(text => name(k).toLowerCase().includes(text) || topics[k].best.some(w => w.toLowerCase().includes(text)) || topics[k].words.some(w => w[0].toLowerCase() === text))); };
function hue(k) { // by what the topic does to the class that is selected; grey while none of several is
  if (!targets.names.length) return "plain";
  if (!single && state.class === null) return topics[k].clear.length ? "" : "unsure";
  return (effect(k, binary ? 1 : focusClass())[0] > 0 ? "towards" : "away") + (isClear(k, targetOf(focusClass())) ? "" : " unsure");
}
function drawMap() {
  const svg = $("map"), size = matchMedia("screen and (max-width: 640px)").matches ? 1.7 : 1, x = k => 22 + 616 * topics[k].at[0], y = k => 20 + 400 * topics[k].at[1], r = k => 400 * topics[k].radius, kept = new Set(matching());
  const boxes = topics.map((_, k) => [x(k) - r(k), y(k) - r(k), x(k) + r(k), y(k) + r(k)]), hits = b => boxes.some(o => b[0] < o[2] && b[2] > o[0] && b[1] < o[3] && b[3] > o[1]);
  const order = topics.map((_, k) => k).sort((a, b) => topics[b].share - topics[a].share), labels = [], inside = (a, w) => Math.max(4, Math.min(a, 656 - w));
  for (const k of [...(state.topic === null ? [] : [state.topic]), ...order]) {
    if (labels.some(l => l.k === k) || labels.length >= 26) continue;
    const text = cut(brief(k), 24), w = 6.1 * size * text.length + 4, gap = r(k) + 3;
    const places = [[x(k) + gap, y(k) + 4], [x(k) - gap - w, y(k) + 4], [inside(x(k) - w / 2, w), y(k) + gap + 10 * size], [inside(x(k) - w / 2, w), y(k) - gap - 2]];
    const at = places.find(([a, b]) => a > 2 && a + w < 658 && b > 12 * size && b < 436 && !hits([a, b - 10 * size, a + w, b + 3]));
    if (at) { boxes.push([at[0], at[1] - 10 * size, at[0] + w, at[1] + 3]); labels.push({k, text, at}); }
  }
  svg.replaceChildren(...order.map(k => draw("circle", {class: hue(k) + (k === focusTopic() ? " on" : "") + (kept.has(k) ? "" : " faint"), cx: x(k), cy: y(k), r: r(k), "data-topic": k, on: {click: () => toggle("topic", k)}}, draw("title", {}, `${k} ${name(k)} ${pullText(k)}`))),
    ...labels.map(({k, text, at}) => draw("text", {x: at[0], y: at[1], class: (k === focusTopic() ? "on" : "") + (kept.has(k) ? "" : " faint")}, text)));
}
function drawList() {
  const by = $("sort").value, kept = matching(), key = {effect: k => -(effect(k)?.[0] ?? 0), share: k => -topics[k].share, topic: k => k}[by];
  kept.sort((a, b) => key(a) - key(b));
  const scale = targets.names.length ? scaleOf(topics.map((_, k) => effect(k))) : null, on = single || !choices.length ? targets.names[0] : choices[focusClass()];
  $("no-topic").textContent = kept.length ? "" : "No topic has that word or name.";
  $("list").replaceChildren(el("caption", {}, plural(kept.length, "topic")), el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "topic"), el("th", {scope: "col", class: "desk"}, "words"), scale && el("th", {scope: "col"}, `effect on ${cut(binary ? classes[focusClass()] : on, 18)}`), scale && el("th", {scope: "col", class: "desk"}, "pulls"), el("th", {scope: "col", class: "number"}, "share"))),
    el("tbody", {}, kept.map(k => el("tr", {"data-topic": k, class: k === focusTopic() ? "on" : ""}, el("th", {scope: "row"}, el("button", {class: "plain", "aria-pressed": String(state.topic === k), on: {click: () => toggle("topic", k)}}, el("small", {}, k + " "), brief(k))),
      el("td", {class: "words desk"}, el("span", {}, topics[k].best.slice(0, 6).join(", "))), scale && el("td", {class: "effect"}, track(effect(k), scale, isClear(k, targetOf(focusClass()))), el("span", {class: "value"}, effectText(effect(k)[0], targetOf(focusClass())))),
      scale && el("td", {class: "desk pull", title: pullText(k)}, cut(pullText(k), 15)), el("td", {class: "number"}, percent(topics[k].share))))));
}
when(["class", "topic", "word", "names"], drawMap);
when(["class", "topic", "word", "names"], drawList);

let frex = 0.5, allEffects = false;
function bestWords(k, n) { // from frequent (0) to exclusive (1)
  const score = w => 1 / ((1 - frex) / Math.max(w[3], 1e-3) + frex / Math.max(w[4], 1e-3));
  return [...topics[k].words].sort((a, b) => score(b) - score(a)).slice(0, n);
}
function wordBars(k) {
  const rows = bestWords(k, 12), most = Math.max(...rows.flatMap(w => [w[1], w[2]]), 1e-12);
  return bars(rows.map(w => [w[0], w[1], () => toggle("word", w[0], ""), `${percent(w[1])} of the topic, ${percent(w[2])} of the corpus`, w[2]]), most, percent);
}
function marked(text, strength) { // a text with the words of a topic marked
  return text.split(/([\p{L}\p{N}_]+)/u).map((part, i) => { const value = i % 2 ? strength.get(part.toLowerCase()) : undefined;
    return value ? el("mark", {"data-word": part.toLowerCase(), style: {"--part": Math.round(15 + 40 * value) + "%"}}, part) : part; });
}
const strengthOf = k => new Map(topics[k].words.map(w => [w[0].toLowerCase(), w[4]]));
function drawCard() {
  const k = focusTopic(), t = topics[k];
  if (!t) return;
  const box = el("input", {id: "name", value: t.name, "aria-label": `name of topic ${k}`, maxlength: 120, on: {change: event => rename(k, event.target.value), keydown: event => { if (event.key === "Enter") event.target.blur(); }}});
  const slider = el("input", {type: "range", id: "frex", min: 0, max: 1, step: 0.1, value: frex, "aria-label": "from frequent to exclusive words"}), words = el("div", {}, wordBars(k));
  slider.oninput = () => { frex = +slider.value; words.replaceChildren(wordBars(k)); };
  const facts = [`${percent(t.share)} of all words`, data.chains > 1 ? `in ${t.chains} of ${data.chains} chains` : "", pullText(k)].filter(Boolean).join(" · ");
  const parts = [el("div", {class: "name"}, el("small", {}, `topic ${k}`), box), el("p", {class: "soft"}, facts),
    el("h3", {}, "Words"), el("div", {class: "slider"}, "frequent", slider, "exclusive"), el("p", {class: "keys soft"}, el("i", {class: "first"}), "in the topic ", el("i", {class: "second"}), "in the corpus"), words];
  if (t.effect) {
    const rows = targets.names.map((_, r) => [r, t.effect.map(row => row[r])]);
    if (!single) rows.sort((a, b) => Math.abs(b[1][0]) - Math.abs(a[1][0]));
    const shown = allEffects ? rows : rows.slice(0, 8), scale = scaleOf(rows.map(row => row[1]));
    parts.push(el("h3", {}, "Effect" + (targets.unit === "score" ? " on the score" : targets.unit ? ` in ${targets.unit}` : "")), el("div", {class: "effects"}, shown.map(([r, row]) => trackRow(targets.names[r], row, apart ? scaleOf([row]) : scale, isClear(k, r), {class: "row" + (isClear(k, r) ? "" : " dim"), on: {click: () => { if (!single && classes.length) toggle("class", r); }}}, undefined, r))),
      !apart && el("div", {class: "row foot"}, el("span", {class: "label"}), axis(scale), el("span", {class: "value"}, targets.unit)));
    if (rows.length > 8) parts.push(el("button", {on: {click: () => { allEffects = !allEffects; drawCard(); }}}, allEffects ? "fewer" : `all ${rows.length}`));
    if (contradicts(k).length) parts.push(el("p", {class: "soft"}, `Its weight and its effect on ${contradicts(k).map(r => `“${targets.names[r]}”`).join(", ")} have different signs: the weight is about this class alone, and the effect also contains that the topic changes the probabilities of the other classes.`));
  }
  for (const group of data.groups) { const rows = group.levels.filter(level => level.documents), many = rows.length > 12 && group.kind !== "time";
    if (many) rows.sort((a, b) => b.share[k] - a.share[k]);
    const most = Math.max(...rows.map(level => level.share[k]), 1e-9);
    if (rows.length) parts.push(el("h3", {}, `Share by ${group.name}${many ? ", the 12 largest" : ""}`), bars(rows.slice(0, many ? 12 : rows.length).map(level => [level.name, level.share[k], null, plural(level.documents, "document")]), most, percent)); }
  parts.push(el("h3", {}, "Near it"), el("div", {class: "chips"}, t.near.map(([j, alike]) => el("button", {class: "chip", title: `likeness ${alike}`, on: {click: () => set({topic: j})}}, `${j} ${brief(j)}`))));
  $("typical").replaceChildren(el("h3", {}, `Documents that are typical of “${cut(t.name, 60)}”`), ...t.typical.map(([row, text, share, id]) => el("p", {class: "typical"}, el("small", {}, percent(share)), " ", marked(text, strengthOf(k)), " ",
    data.documents.some(d => d.row === row) ? el("button", {class: "plain link", on: {click: () => { set({doc: row, topic: k}); $("reader").scrollIntoView(); }}}, `read ${id}`) : el("small", {}, `document ${id}, not in the reader`))));
  card.replaceChildren(...parts.flat().filter(Boolean));
}
function contradicts(k) { // targets for which weight and effect are both clear, with different signs
  return targets.weights ? topics[k].clear.filter(r => topics[k].clear_weight.includes(r) && topics[k].effect[0][r] * topics[k].weight[0][r] < 0) : [];
}
when(["class", "topic", "names"], drawCard);
