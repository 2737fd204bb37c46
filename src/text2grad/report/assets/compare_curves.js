// Curves of several runs in one chart per metric, each run in its colour.

function initComparedCurves(runs, names) {
  const main = document.getElementById("main-curves");
  const other = document.getElementById("other-curves");
  if (!main) return;
  const known = new Set(["step", ...MAIN_CURVES.map((curve) => curve.name)]);
  const recorded = new Set(runs.flatMap((run) => Object.keys(run.metrics)));
  for (const curve of MAIN_CURVES) {
    if (recorded.has(curve.name)) main.append(comparedChart(curve, runs, names));
  }
  for (const name of [...recorded].filter((name) => !known.has(name))) {
    const title = name.replaceAll("_", " ").replaceAll("/", " / ");
    const curve = { name, title: title[0].toUpperCase() + title.slice(1), note: NOTES[name] ?? "" };
    other.append(comparedChart(curve, runs, names));
  }
}

function comparedChart(curve, runs, names) {
  const show = curve.show ?? number;
  const series = runs
    .filter((run) => run.metrics[curve.name])
    .map((run) => ({
      index: run.index,
      points: run.metrics.step.map((step, i) => ({ step, value: run.metrics[curve.name][i] })),
    }))
    .filter(({ points }) => points.some((point) => point.value !== null));
  const readout = element("output", { class: "readout" });
  const figure = element(
    "figure",
    { class: "chart", "data-metric": curve.name },
    element(
      "figcaption",
      {},
      element("h3", {}, curve.title),
      element("span", { class: "note" }, curve.note),
      readout,
    ),
  );
  if (series.length === 0) {
    figure.append(element("p", { class: "empty" }, "No values recorded."));
    return figure;
  }
  // One point per step, for the pointer to find; its value is that of the first run that has the step.
  const steps = new Map();
  for (const { points } of series)
    for (const point of points) if (point.value !== null && !steps.has(point.step)) steps.set(point.step, point);
  const measured = [...steps.values()].sort((a, b) => a.step - b.step);
  const describe = (find) =>
    series.map(({ index, points }) =>
      element(
        "span",
        { class: `run-${index % 6} value`, title: names[index] },
        element("span", { class: "key", "aria-hidden": "true" }),
        show(find(points)?.value ?? null),
      ),
    );
  const showLast = () =>
    readout.replaceChildren(
      "last: ",
      ...describe((points) => points.findLast((point) => point.value !== null)),
    );
  const image = svgElement("svg", {
    role: "img",
    tabindex: "0",
    "aria-label":
      `${curve.title} by step of ${series.map(({ index }) => names[index]).join(", ")}; ` +
      "use the left and right arrow keys to read single steps",
  });
  figure.append(image);
  showLast();
  new ResizeObserver(() => image.clientWidth && plotCompared(image, series, measured, curve, show)).observe(figure);
  pickPoints(image, measured, (picked) => {
    if (!picked) showLast();
    else
      readout.replaceChildren(
        `step ${picked.step}: `,
        ...describe((points) => points.find((point) => point.step === picked.step)),
      );
  });
  return figure;
}

function plotCompared(image, series, measured, curve, show) {
  const width = image.clientWidth;
  const values = series.flatMap(({ points }) => points.map((point) => point.value)).filter((value) => value !== null);
  const [firstStep, lastStep] = [measured[0].step, measured.at(-1).step];
  const margin = firstStep === lastStep ? 0.5 : 0;
  const yTicks = valueTicks(values, curve);
  const x = scale(firstStep - margin, lastStep + margin, CHART.left, width - CHART.right);
  const y = scale(yTicks[0], yTicks.at(-1), CHART.height - CHART.bottom, CHART.top);
  image.setAttribute("viewBox", `0 0 ${width} ${CHART.height}`);
  image.scales = { x, y };
  image.replaceChildren(
    ...axes(yTicks, stepTicks(firstStep, lastStep, width), x, y, width, show),
    ...series.map(({ index, points }) =>
      svgElement(
        "g",
        { class: `run-${index % 6}` },
        line(SPARSE.test(curve.name) ? points.filter((point) => point.value !== null) : points, x, y),
      ),
    ),
    svgElement("line", { class: "cursor", y1: CHART.top, y2: CHART.height - CHART.bottom, visibility: "hidden" }),
    svgElement("circle", { class: "picked", r: 4.5, visibility: "hidden" }),
  );
}
