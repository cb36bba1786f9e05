// Predictions of numbers and of times, against what was observed.

const r2Text = v => v === null || v === undefined ? "–" : minus((Math.abs(v) < 0.0005 ? 0 : v).toFixed(3));
function layOutNumbers() {
  $("evaluation").replaceChildren(...found.columns.map((column, r) => {
    const ends = column.points.flatMap(p => [p[0], p[1]]).filter(Number.isFinite).concat(column.rival_points ?? []), low = Math.min(...ends), high = Math.max(...ends), pad = 0.04 * (high - low) || 1, box = [low - pad, high + pad];
    const p = plot(`Predicted against observed ${targets.names[r]}`, {width: 520, height: 420, x: box, y: box, xTitle: `predicted “${cut(targets.names[r], 30)}”`, yTitle: `observed`}), clamp = v => Math.max(box[0], Math.min(box[1], v));
    p.segment(low, low, high, high, {class: "guide"});
    for (const [x, y, lo, hi] of column.points) p.add("line", {class: "span" + (y < lo || y > hi ? " out" : ""), x1: p.x(clamp(lo)), x2: p.x(clamp(hi)), y1: p.y(y), y2: p.y(y)});
    (column.rival_points ?? []).forEach((x, i) => column.points[i] && p.dot(x, column.points[i][1], {class: "hollow", r: 2.5}));
    for (const [x, y, lo, hi] of column.points) p.dot(x, y, {class: y < lo || y > hi ? "out" : "", r: 3});
    const [a, b] = column.coverage_interval, rival = column.rival;
    return el("div", {class: "pair wide-left"}, figure(`“${targets.names[r]}”: predicted against observed, with 90${PERCENT} intervals`, p.svg, el("p", {class: "keys soft"}, el("i", {class: "point"}), "inside its interval ", el("i", {class: "point out"}), "outside ", column.rival_points && [el("i", {class: "point hollow"}), found.rival.name ?? "the other model"])),
      el("div", {}, el("table", {}, el("caption", {}, "Figures"), el("thead", {}, el("tr", {}, ["", "this model", "always the mean", ...(rival ? [found.rival.name ?? "another model"] : [])].map((text, i) => el("th", {scope: "col", class: i ? "number" : ""}, text)))), el("tbody", {},
        el("tr", {}, el("th", {scope: "row"}, "R²"), el("td", {class: "number"}, r2Text(column.score)), el("td", {class: "number"}, r2Text(column.base_score)), rival && el("td", {class: "number"}, r2Text(rival.score))),
        el("tr", {}, el("th", {scope: "row"}, "mean error"), el("td", {class: "number"}, number(column.mean_error)), el("td", {class: "number"}, number(column.base_error)), rival && el("td", {class: "number"}, number(rival.mean_error))))),
      el("p", {}, `Of the 90${PERCENT} intervals, ${percent(column.coverage)} contain what was observed (${range(a, b, percent)}). ` + (a > 0.9 ? "They are too wide." : b < 0.9 ? "They are too narrow." : `This agrees with 90${PERCENT}.`)),
      el("p", {class: "soft"}, "Documents outside their interval are “wrong” in the reader.")));
  }));
  tables.points = () => found.columns.flatMap((column, r) => column.points.map(([predicted, observed, lower, upper]) => ({column: targets.names[r], predicted, observed, lower, upper})));
  $("evaluation").append(el("button", {class: "csv", "data-csv": "points"}, "CSV"));
  $("figures").textContent = found.columns.length > 1 ? `R² is ${r2Text(found.score)} on average.` : "";
}
function layOutTimes() {
  const last = found.edges[found.edges.length - 1], p = plot("Survival in thirds of the predicted risk", {width: 520, height: 360, x: [0, last], y: [0, 1], xTitle: cut(data.what, 30), yTitle: "share without the event", yText: whole});
  found.risks.forEach((risk, i) => {
    p.line([[0, 1], ...found.edges.map((t, j) => [t, risk.predicted[j]])], {class: `curve third-${i}`});
    risk.observed.forEach((v, j) => p.dot(found.edges[j], v, {class: `third-${i}`, r: 3.5}));
  });
  $("evaluation").replaceChildren(el("div", {class: "pair wide-left"}, figure("Lines: predicted. Dots: observed (Kaplan and Meier), in thirds of the predicted risk", p.svg, el("p", {class: "keys soft"}, found.risks.flatMap((risk, i) => [el("i", {class: `point third-${i}`}), `${risk.name} risk `]))),
    el("table", {}, el("caption", {}, "Figures"), el("tbody", {}, found.figures.map(([what, v]) => el("tr", {}, el("th", {scope: "row"}, what.replace("brier", "Brier").replace("uno c", "Uno's c")), el("td", {class: "number"}, number(v))))))));
}
