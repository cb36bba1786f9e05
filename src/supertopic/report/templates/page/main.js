// Traces, evaluation, and the start of the page.

function drawTraces() {
  const t = data.traces, late = t.log_joint.flatMap(row => row.filter((_, i) => t.iterations[i] >= Math.min(...t.burn_in) / 3)), values = late.length ? late : t.log_joint.flat();
  if (!values.length) return;
  const low = Math.min(...values), high = Math.max(...values), p = new Plot($("traces"), {width: 460, height: 240, left: 70, x: [0, Math.max(...t.iterations, 1)], y: [low, high > low ? high : low + 1], xTitle: "iteration", yTitle: "log joint", yText: v => minus(v.toLocaleString("en", {notation: "compact", maximumSignificantDigits: 4}))});
  t.log_joint.forEach((row, chain) => {
    p.line(row.map((v, i) => [t.iterations[i], Math.max(v, low)]), {opacity: 0.9 - 0.12 * (chain % 6)});
    p.segment(t.burn_in[chain], low, t.burn_in[chain], high > low ? high : low + 1, {class: "guide"});
  });
}
const lay = found && {classes: [layOutClasses, drawClasses], labels: [layOutLabels, drawLabels], numbers: [layOutNumbers], times: [layOutTimes]}[found.kind];
if (lay) {
  lay[0]();
  if (lay[1]) when(["class", "cell", "names"], lay[1]);
}
$("find").oninput = () => { drawMap(); drawList(); };
$("sort").onchange = drawList;
$("save").onclick = savePage;
const openSections = () => { document.body.classList.add("all"); putCardHome(); };
$("more").onclick = openSections;
for (const link of document.querySelectorAll("nav a, .skip")) link.onclick = event => { // the address is that of the state
  const section = document.querySelector(link.getAttribute("href"));
  if (!section) return;
  event.preventDefault();
  openSections();
  section.scrollIntoView();
  section.tabIndex = -1;
  section.focus({preventScroll: true});
};
new ResizeObserver(() => document.documentElement.style.setProperty("--nav", $("nav").offsetHeight + "px")).observe($("nav"));
const openAll = () => { allPanels = true; document.querySelectorAll("details").forEach(d => { d.open = true; }); if (targets.names.length) drawDrivers(); putCardHome(); };
window.addEventListener("beforeprint", openAll);
const everything = ["class", "topic", "word", "doc", "beside", "cell", "which", "search", "names"];
window.addEventListener("popstate", () => { Object.assign(state, readAddress()); show(everything); });
window.addEventListener("hashchange", () => { Object.assign(state, readAddress()); show(everything); });
Object.assign(state, readAddress());
show(everything);
drawTraces();
