// One word: its topics, its direct weights, the documents that have it.

const placeOf = new Map(data.words.map((w, i) => [w.toLowerCase(), i]));
function drawWord() {
  const word = state.word, box = $("answer");
  if (document.activeElement !== $("ask")) $("ask").value = word;
  if (!word) { box.replaceChildren(el("p", {class: "soft"}, "Type a word, or click one anywhere in the page.")); return; }
  const i = placeOf.get(word.toLowerCase()), has = documents.filter(d => hasWord(d, word)), parts = [];
  if (i === undefined || i >= data.facts.topics.length) parts.push(el("p", {}, `“${cut(word, 60)}” is not among the words of this page that have topics or weights.`));
  else {
    const of = data.facts.topics[i], direct = data.facts.direct[i];
    if (of.length) parts.push(el("div", {}, el("h3", {}, "Topics of its tokens"), bars(of.map(([k, part]) => [`${k} ${brief(k)}`, part, () => toggle("topic", k)]), 1, percent)));
    if (direct.length) { const most = Math.max(...direct.map(([, v]) => Math.abs(v))); parts.push(el("div", {}, el("h3", {}, "Direct weights, beside topics"), el("div", {class: "bars"}, direct.map(([t, v]) => el("div", {class: "barrow"}, el("span", {class: "label"}, (binary ? classes[1] : classes[t] && !single ? classes[t] : targets.names[Math.min(t, targets.names.length - 1)]) ?? ""), el("span", {class: "beam"}, el("i", {class: v < 0 ? "away" : "towards", style: {width: 100 * Math.abs(v) / most + "%"}})), el("span", {class: "value" + (v < 0 ? " less" : "")}, signed(v))))))); }
    if (!of.length && !direct.length) parts.push(el("p", {}, "It is in no topic and has no direct weight."));
  }
  parts.push(el("div", {}, el("h3", {}, plural(has.length, "document") + " of this page"), has.length ? el("ol", {}, has.slice(0, 8).map(d => el("li", {}, el("button", {class: "plain link", on: {click: () => { set({doc: d.row}); $("reader").scrollIntoView(); }}}, `${called(d)}: ${around(d.text, word)}`)))) : el("p", {class: "soft"}, "No document of this page contains it.")));
  box.replaceChildren(el("div", {class: "triple"}, ...parts));
}
function around(text, word) { const all = wordsIn(text), own = joined(wordsIn(word)), n = wordsIn(word).length, first = all.find((_, i) => joined(all.slice(i, i + n)) === own), at = first ? first.index : text.toLowerCase().indexOf(word.toLowerCase()), start = Math.max(0, at - 30); return (start ? "…" : "") + cut(text.slice(start).trim(), 80); }
function suggest() {
  const asked = $("ask").value.trim().toLowerCase();
  const first = asked ? data.words.filter(w => w.toLowerCase().startsWith(asked)).slice(0, 6) : [];
  $("suggestions").replaceChildren(...first.map(w => el("button", {class: "chip", on: {click: () => { set({word: w}); $("ask").value = w; $("suggestions").replaceChildren(); }}}, w)));
}
$("ask").oninput = suggest;
$("ask").onkeydown = event => { if (event.key === "Enter") { set({word: $("ask").value.trim()}); $("suggestions").replaceChildren(); } };
$("ask").onchange = () => { set({word: $("ask").value.trim()}); };
when(["word", "names"], drawWord);
