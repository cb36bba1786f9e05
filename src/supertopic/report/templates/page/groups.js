// Shares of topics by group or over time, and two models side by side.

const MOST_SMALL = 6;
function drawGroups() {
  const g = data.groups[+$("grouping").value || 0], change = k => { const own = g.levels.map(level => level.share[k]).filter(v => v !== null); return own.length ? Math.max(...own) - Math.min(...own) : 0; };
  const order = topics.map((_, k) => k).sort((a, b) => change(b) - change(a)), shown = [...new Set([...(state.topic === null ? [] : [state.topic]), ...order])].slice(0, MOST_SMALL);
  $("shares").className = "live" + (g.kind === "time" ? " lines" : "");
  $("shares").replaceChildren(...shown.map(k => {
    const most = Math.max(...g.levels.map(level => (level.share[k] ?? 0) + (level.half[k] ?? 0)), 1e-6), title = el("h3", {}, el("button", {class: "plain", "aria-pressed": String(state.topic === k), on: {click: () => toggle("topic", k)}}, `${k} ${brief(k)}`));
    if (g.kind === "time") {
      const n = g.levels.length, p = plot(`Share of topic ${name(k)} over time`, {width: 360, height: 220, n: 4, x: [0, Math.max(n - 1, 1)], y: [0, most], xTitle: g.name, yTitle: "mean share", xText: v => Number.isInteger(v) && g.levels[v] ? g.levels[v].name : "", yText: tick});
      const known = g.levels.map((level, i) => [i, level.share[k], level.half[k] ?? 0]).filter(([, v]) => v !== null);
      p.line([...known.map(([i, v, h]) => [i, Math.min(v + h, most)]), ...known.map(([i, v, h]) => [i, Math.max(v - h, 0)]).reverse()], {class: "band"});
      p.line(known.map(([i, v]) => [i, v]));
      for (const [i, v] of known) p.dot(i, v, {r: 2.5});
      return el("div", {class: "panel"}, title, p.svg, el("p", {class: "soft"}, `${plural(g.levels.reduce((s, level) => s + level.documents, 0), "document")}, ${g.levels.length} periods`));
    }
    const scale = {low: 0, high: most, at: v => 100 * Math.max(0, Math.min(1, v / most))};
    return el("div", {class: "panel"}, title, g.levels.map((level, i) => el(g.kind === "class" && classes.length ? "button" : "div", {class: "row", title: plural(level.documents, "document"), on: g.kind === "class" && classes.length ? {click: () => toggle("class", i)} : null}, el("span", {class: "label"}, cut(level.name, 26), el("small", {}, ` ${level.documents.toLocaleString("en")}`)), el("span", {class: "track"}, level.share[k] !== null && [level.half[k] !== null && el("i", {class: "bar plain", style: {left: scale.at(level.share[k] - level.half[k]) + "%", width: scale.at(level.share[k] + level.half[k]) - scale.at(level.share[k] - level.half[k]) + "%"}}), el("i", {class: "dot plain", style: {left: scale.at(level.share[k]) + "%"}})]), el("span", {class: "value"}, percent(level.share[k])))),
      el("div", {class: "row foot"}, el("span", {class: "label"}, "mean share"), el("span", {class: "axis track", "aria-hidden": "true"}, ticks(0, most, 2).map(v => el("span", {style: {left: scale.at(v) + "%"}}, tick(v)))), el("span", {class: "value"})));
  }), data.evaluation && g.levels.some(level => level.right !== null) ? el("div", {class: "panel"}, el("h3", {}, found.kind === "numbers" ? `Share of documents inside their 90${PERCENT} interval` : "Share of documents that are predicted right"), bars(g.levels.map(level => [cut(level.name, 26), level.right, null, plural(level.documents, "document")]), 1, percent)) : "");
}
if ($("groups")) {
  $("grouping").append(...data.groups.map((g, i) => el("option", {value: i}, cut(g.name, 40))));
  const given = data.groups.findIndex(g => g.kind !== "class");
  $("grouping").value = Math.max(given, 0);
  $("grouping").onchange = drawGroups;
  when(["class", "topic", "names"], drawGroups);
}
function drawOther() {
  const o = data.other, differ = documents.filter(d => d.other?.[1]), parts = [];
  if (o.scores) { const text = o.measure === "mean error" ? number : percent; parts.push(el("p", {}, `${o.measure[0].toUpperCase() + o.measure.slice(1)}: ${text(o.scores[0])} with this model, ${text(o.scores[1])} with the other one (${o.name}, ${plural(o.n_topics, "topic")}).` + (o.difference ? ` The difference is ${o.measure === "mean error" ? number(o.difference[0]) : signed(100 * o.difference[0], 1) + " points"}, with a 90${PERCENT} interval from ${o.measure === "mean error" ? `${number(o.difference[1])} to ${number(o.difference[2])}` : `${signed(100 * o.difference[1], 1)} to ${signed(100 * o.difference[2], 1)}`}.` : ""))); }
  parts.push(el("div", {class: "scroll tall"}, el("table", {}, el("caption", {}, "Topics that have most words in common"), el("thead", {}, el("tr", {}, ["this model", "the other model", "its words", "pulls to", "alike"].map(text => el("th", {scope: "col"}, text)))),
    el("tbody", {}, topics.map((_, k) => k).sort((a, b) => (o.topics[b]?.alike ?? -1) - (o.topics[a]?.alike ?? -1)).map(k => { const t = o.topics[k]; return el("tr", {class: k === focusTopic() ? "on" : ""}, el("th", {scope: "row"}, el("button", {class: "plain", "aria-pressed": String(state.topic === k), on: {click: () => toggle("topic", k)}}, `${k} ${brief(k)}`)), t ? [el("td", {}, `${t.topic} ${cut(t.name, 40)}`), el("td", {class: "words"}, t.words.join(", ")), el("td", {}, t.pull ?? ""), el("td", {class: "number"}, whole(t.alike))] : el("td", {colspan: 4, class: "soft"}, "no matching topic")); })))));
  if (o.left.length) parts.push(el("p", {class: "soft"}, `Topics that only the other model has: ${o.left.map(t => `${t.topic} ${t.name}`).join("; ")}.`));
  if (differ.length) parts.push(el("h3", {}, "Documents that they predict differently"), el("ol", {class: "celldocs"}, differ.slice(0, 12).map(d => el("li", {}, el("button", {class: "plain link", on: {click: () => { set({doc: d.row}); $("reader").scrollIntoView(); }}}, `${called(d)}: ${cut(answer(d), 30)} / ${cut(d.other[0], 30)}${d.true ? `; it is ${d.true}` : ""}: ${cut(d.text.trim(), 50)}`)))));
  $("compared").replaceChildren(...parts);
}
if ($("other")) when(["topic", "names"], drawOther);
