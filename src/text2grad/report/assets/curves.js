// Metrics by step: raw values as dots, a smoothed line, gaps where a step has no value.

const MAIN_CURVES = [
  { name: "reward", title: "Reward", note: "mean total reward per completion", wide: true },
  { name: "eval/score", title: "Held-out score", note: "critic's score, evaluated during training", wide: true },
  { name: "kl", title: "KL", note: "to the reference model, summed per completion" },
  { name: "completions/mean_length", title: "Completion length", note: "mean number of tokens", zero: true },
  { name: "rewards/coverage", title: "Span coverage", note: "non-zero token rewards", zero: true, show: percent },
  { name: "critic/failed", title: "Failed critiques", note: "masked out of training", zero: true, bars: true },
];
const NOTES = {
  samples: "completions sampled per step",
  "completions/clipped_ratio": "share of completions cut at the length limit",
  "completions/repetition": "share of 4-grams that occurred before",
  kl_per_token: "to the reference model",
  policy_loss: "clipped surrogate",
  value_loss: "squared error of the value head",
  entropy: "of the policy, per token",
  clip_fraction: "share of tokens with a clipped ratio",
  approx_kl: "to the policy before the update",
  grad_norm: "before clipping",
  num_updates: "optimizer steps on the samples of a step",
  skipped: "1 where the update was skipped",
  beta: "KL coefficient",
  learning_rate: "of the policy",
  explained_variance: "of the returns by the value head",
  tokens_per_second: "sampled and trained on",
  "sampling/logp_difference/mean": "between sampler and trainer, per token",
  "sampling/logp_difference/max": "between sampler and trainer, per token",
  "sampling/importance_ratio/mean": "trainer over sampler",
  "eval/rouge_l": "held-out completions against references",
  "eval/words": "mean per held-out completion",
  "eval/samples": "held-out completions",
  "eval/failed": "failed critiques of held-out completions",
  "time/step": "seconds per step",
  "time/rollout": "seconds per step",
  "time/critique_and_score": "seconds per step",
  "time/update": "seconds per step",
  "time/evaluation": "seconds per evaluation",
};
// Recorded at some steps only: drawn without gaps, and omitted where a run has none.
const SPARSE = /^(eval\/|time\/evaluation$)/;
const CHART = { height: 168, left: 46, right: 12, top: 10, bottom: 24 };

// onlyRecorded: leave out metrics without any value, of trainers that record others.
function initCurves(metrics, onlyRecorded) {
  const main = document.getElementById("main-curves");
  const other = document.getElementById("other-curves");
  if (!main || !metrics.step) return;
  for (const curve of MAIN_CURVES) {
    if (metrics[curve.name] || !(onlyRecorded || SPARSE.test(curve.name))) main.append(chart(curve, metrics));
  }
  const known = new Set(["step", ...MAIN_CURVES.map((curve) => curve.name)]);
  for (const name of Object.keys(metrics).filter((name) => !known.has(name))) {
    const title = name.replaceAll("_", " ").replaceAll("/", " / ");
    other.append(chart({ name, title: title[0].toUpperCase() + title.slice(1), note: NOTES[name] ?? "" }, metrics));
  }
}

function chart(curve, metrics) {
  const show = curve.show ?? number;
  const values = metrics[curve.name] ?? metrics.step.map(() => null);
  const points = metrics.step.map((step, i) => ({ step, value: values[i], of: metrics.samples?.[i] ?? null }));
  const measured = points.filter((point) => point.value !== null);
  const readout = element("output", { class: "readout" });
  const figure = element(
    "figure",
    { class: curve.wide ? "chart wide" : "chart", "data-metric": curve.name },
    element(
      "figcaption",
      {},
      element("span", { class: "chart-title" }, element("h3", {}, curve.title), readout),
      element("span", { class: "note" }, curve.note),
    ),
  );
  if (measured.length === 0) {
    figure.append(element("p", { class: "empty" }, "No values recorded."));
    return figure;
  }
  const describePoint = (point) =>
    `step ${point.step}: ${show(point.value)}` + (curve.bars && point.of !== null ? ` of ${point.of}` : "");
  const showSummary = () => {
    readout.textContent = curve.bars
      ? `mean ${number(measured.reduce((sum, point) => sum + point.value, 0) / measured.length)} per step`
      : measured.length > 1
        ? `${show(measured[0].value)} → ${show(measured.at(-1).value)}`
        : show(measured[0].value);
  };
  const image = svgElement("svg", {
    role: "img",
    tabindex: "0",
    "aria-label":
      `${curve.title} by step, from ${show(measured[0].value)} to ${show(measured.at(-1).value)}; ` +
      "use the left and right arrow keys to read single steps",
  });
  figure.append(image);
  showSummary();
  new ResizeObserver(() => image.clientWidth && plot(image, points, measured, curve, show)).observe(figure);
  pickPoints(image, measured, (point) => {
    if (point) readout.textContent = describePoint(point);
    else showSummary();
  });
  return figure;
}

// Draws at the actual width in pixels, so that text and strokes have the same size on every screen.
function plot(image, points, measured, curve, show) {
  const width = image.clientWidth;
  const steps = points.map((point) => point.step);
  const [firstStep, lastStep] = [steps[0], steps.at(-1)];
  const margin = firstStep === lastStep || curve.bars ? 0.5 : 0;
  const values = measured.map((point) => point.value);
  const yTicks = valueTicks(values, curve);
  const x = scale(firstStep - margin, lastStep + margin, CHART.left, width - CHART.right);
  const y = scale(yTicks[0], yTicks.at(-1), CHART.height - CHART.bottom, CHART.top);
  image.setAttribute("viewBox", `0 0 ${width} ${CHART.height}`);
  image.scales = { x, y };
  image.replaceChildren(
    ...axes(yTicks, stepTicks(firstStep, lastStep, width), x, y, width, show),
    ...(curve.bars
      ? bars(measured, x, y, (width - CHART.left - CHART.right) / (lastStep - firstStep + 1))
      : line(SPARSE.test(curve.name) ? measured : points, x, y)),
    svgElement("line", { class: "cursor", y1: CHART.top, y2: CHART.height - CHART.bottom, visibility: "hidden" }),
    svgElement("circle", { class: "picked", r: 4.5, visibility: "hidden" }),
  );
}

function axes(yTicks, xTicks, x, y, width, show) {
  return [
    ...yTicks.flatMap((tick) => [
      svgElement("line", {
        class: tick === 0 ? "axis" : "grid",
        x1: CHART.left,
        x2: width - CHART.right,
        y1: y(tick),
        y2: y(tick),
      }),
      svgElement(
        "text",
        { x: CHART.left - 6, y: y(tick), "text-anchor": "end", "dominant-baseline": "central" },
        show(tick),
      ),
    ]),
    ...xTicks.map((tick) =>
      svgElement("text", { x: x(tick), y: CHART.height - 6, "text-anchor": "middle" }, number(tick)),
    ),
  ];
}

function bars(measured, x, y, slot) {
  const width = clamp(slot * 0.7, 1, 18);
  return measured.map(({ step, value }) =>
    svgElement("rect", { class: "bar", x: x(step) - width / 2, width, y: y(value), height: y(0) - y(value) }),
  );
}

function line(points, x, y) {
  const smooth = smoothed(points.map((point) => point.value));
  let path = "";
  points.forEach(({ step, value }, i) => {
    if (value === null) return;
    const command = i > 0 && points[i - 1].value !== null ? "L" : "M";
    path += `${command}${x(step).toFixed(1)} ${y(smooth[i]).toFixed(1)}`;
  });
  const radius = points.length > 300 ? 1.2 : 2.2;
  return [
    ...points
      .filter((point) => point.value !== null)
      .map(({ step, value }) => svgElement("circle", { class: "raw", cx: x(step), cy: y(value), r: radius })),
    svgElement("path", { class: "smooth", d: path }),
  ];
}

// A centred moving average over a tenth of the run: it has no lag, so changes show at the step where they happened.
function smoothed(values) {
  const reach = Math.round(values.length / 20);
  return values.map((_, i) => {
    const near = values.slice(Math.max(0, i - reach), i + reach + 1).filter((value) => value !== null);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

function scale(low, high, from, to) {
  const position = (value) => from + ((value - low) / (high - low)) * (to - from);
  position.invert = (pixel) => low + ((pixel - from) / (to - from)) * (high - low);
  return position;
}

// Of counts, which are drawn as bars, whole numbers.
function valueTicks(values, curve) {
  const low = Math.min(...values, ...(curve.zero ? [0] : []));
  const high = Math.max(...values, ...(curve.bars ? [1] : []));
  return ticks(low, high, 4).filter((tick) => !curve.bars || Number.isInteger(tick));
}

// Round numbers that enclose low and high, about `count` of them.
function ticks(low, high, count) {
  if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) / 2, high + Math.abs(high) / 2];
  const rough = (high - low) / count;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((size) => size >= rough * 0.999);
  const [first, last] = [Math.floor(low / unit + 1e-9), Math.ceil(high / unit - 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * unit).toPrecision(12)));
}

function stepTicks(first, last, width) {
  if (first === last) return [first];
  const inside = ticks(first, last, Math.max(2, Math.floor(width / 80)));
  return inside.filter((tick) => tick >= first && tick <= last && Number.isInteger(tick));
}

// Reports the measured point under the pointer or selected with the arrow keys, and null when it is left.
function pickPoints(image, measured, report) {
  let picked = null;
  const pick = (point) => {
    picked = point;
    const [cursor, dot] = [image.querySelector(".cursor"), image.querySelector(".picked")];
    if (point && image.scales) {
      const [x, y] = [image.scales.x(point.step), image.scales.y(point.value)];
      applyTo(cursor, { x1: x, x2: x }, []);
      applyTo(dot, { cx: x, cy: y }, []);
    }
    for (const mark of [cursor, dot]) mark?.setAttribute("visibility", point ? "visible" : "hidden");
    report(point);
  };
  const nearest = (event) => {
    const step = image.scales.x.invert(event.clientX - image.getBoundingClientRect().left);
    return measured.reduce((best, point) => (Math.abs(point.step - step) < Math.abs(best.step - step) ? point : best));
  };
  applyTo(
    image,
    {
      pointermove: (event) => pick(nearest(event)),
      pointerdown: (event) => pick(nearest(event)),
      pointerleave: (event) => event.pointerType === "mouse" && pick(null),
      blur: () => pick(null),
      keydown: (event) => {
        const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!move) return;
        event.preventDefault();
        const at = picked ? measured.indexOf(picked) + move : move > 0 ? 0 : measured.length - 1;
        pick(measured[clamp(at, 0, measured.length - 1)]);
      },
    },
    [],
  );
}
