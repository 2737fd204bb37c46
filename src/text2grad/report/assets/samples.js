// The sample browser: selects a step, one of its samples, and the value that colours its tokens.

function initSamples(samples) {
  const root = document.getElementById("sample-browser");
  if (!root || samples.length === 0) return;
  const steps = [...new Set(samples.map((sample) => sample.step))];
  const limits = scaleLimits(samples);
  const state = { step: steps.length - 1, sample: 0, mode: "reward" };

  const slider = element("input", {
    type: "range",
    min: 0,
    max: steps.length - 1,
    "aria-label": "Step",
    input: () => goTo(Number(slider.value)),
  });
  const stepName = element("output", { class: "step-name", "aria-live": "polite" });
  const chips = element("div", { class: "sample-chips", role: "group", "aria-label": "Samples of this step" });
  const legend = element("div", { class: "legend" });
  const view = element("div", { class: "sample-view" });
  const previous = element(
    "button",
    { type: "button", "aria-label": "Previous step", click: () => goTo(state.step - 1) },
    "‹",
  );
  const next = element(
    "button",
    { type: "button", "aria-label": "Next step", click: () => goTo(state.step + 1) },
    "›",
  );
  const clearHighlight = linkHighlights(view);
  let colour = () => {};

  const recolour = () => {
    colour(state.mode, limits[state.mode]);
    legend.replaceChildren(...legendOf(state.mode, limits[state.mode]));
  };
  const draw = () => {
    const here = samples.filter((sample) => sample.step === steps[state.step]);
    state.sample = clamp(state.sample, 0, here.length - 1);
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", `step ${steps[state.step]}`);
    stepName.textContent = `Step ${steps[state.step]}`;
    previous.disabled = state.step === 0;
    next.disabled = state.step === steps.length - 1;
    chips.replaceChildren(...here.map((sample, i) => chip(sample, i === state.sample, () => select(i))));
    const shown = sampleView(here[state.sample]);
    colour = shown.colour;
    view.replaceChildren(...shown.children);
    clearHighlight();
    hideTooltip();
    recolour();
  };
  const goTo = (step) => {
    state.step = clamp(step, 0, steps.length - 1);
    draw();
  };
  const select = (sample) => {
    state.sample = sample;
    draw();
    chips.children[state.sample].focus();
  };

  chips.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    select(clamp(state.sample + move, 0, chips.children.length - 1));
  });
  document.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const elsewhere =
      event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input");
    if (move && !elsewhere) goTo(state.step + move);
  });
  root.append(
    element(
      "div",
      { class: "controls" },
      element("div", { class: "step-picker" }, previous, slider, next, stepName),
      chips,
      element(
        "div",
        { class: "colouring" },
        modeSwitch(state.mode, (mode) => {
          state.mode = mode;
          recolour();
        }),
        legend,
      ),
    ),
    view,
  );
  draw();
}

function chip(sample, selected, select) {
  const failed = sample.feedback?.status === "failed";
  const total = sample.total ?? null;
  const outcome = failed ? "failed" : signed(total);
  const kind = failed ? "failed" : total < 0 ? "poor" : total > 0 ? "good" : "neutral";
  return element(
    "button",
    {
      type: "button",
      class: `chip ${kind}`,
      "aria-pressed": String(selected),
      tabindex: selected ? "0" : "-1",
      "aria-label": `Sample ${sample.sample}, ` + (failed ? "critique failed" : `total reward ${number(total)}`),
      click: select,
    },
    element("span", { class: "chip-name" }, `#${sample.sample}`),
    element("span", { class: "chip-total" }, outcome),
  );
}

function sampleView(sample) {
  const tokens = tokensOf(sample);
  const { box, colour } = tokenView(sample, tokens);
  const hasValues = tokens.some((token) => Object.values(MODES).some((mode) => mode.value(token) !== null));
  const children = [
    contextOf(sample),
    element(
      "div",
      { class: "columns" },
      element(
        "section",
        { "aria-label": "Completion" },
        element("h3", {}, "Completion"),
        element(
          "p",
          { class: "badges" },
          sample.is_whole ? null : badge(`${tokens.length} tokens`),
          sample.total === undefined ? null : badge(`total reward ${signed(sample.total)}`),
          sample.outcome == null ? null : badge(`of that, for the whole ${signed(sample.outcome)}`),
          Object.entries(sample.scores).map(([name, value]) => badge(`${name} ${number(value)}`)),
          sample.truncated ? badge("cut at the length limit", "warning") : null,
          hasValues ? null : badge("no token rewards: masked out of training", "warning"),
        ),
        box,
      ),
      element(
        "section",
        { "aria-label": "Critique" },
        element("h3", {}, "Critique"),
        element(
          "p",
          { class: "badges" },
          sample.feedback ? badge(sample.feedback.critic) : null,
          sample.feedback?.score === undefined ? null : badge(`score ${number(sample.feedback.score)}`),
        ),
        critiqueOf(sample.feedback, sample.completion),
      ),
    ),
  ];
  return { children, colour };
}

function badge(text, kind = "") {
  return element("span", { class: `badge ${kind}` }, text);
}

function modeSwitch(selected, select) {
  return element(
    "fieldset",
    { class: "switch" },
    element("legend", {}, "Colour tokens by"),
    Object.entries(MODES).map(([mode, { title }]) =>
      element(
        "label",
        {},
        element("input", {
          type: "radio",
          name: "mode",
          value: mode,
          checked: mode === selected,
          change: () => select(mode),
        }),
        element("span", {}, title),
      ),
    ),
  );
}

// Swatches are painted by the same function as the tokens, so that legend and tokens agree.
function legendOf(mode, limit) {
  const swatches = Array.from({ length: 21 }, (_, i) => {
    const swatch = element("span", { class: "swatch" });
    paint(swatch, ((i - 10) / 10) * limit, limit);
    return swatch;
  });
  const { low, high } = MODES[mode];
  return [
    element("span", { class: "legend-end" }, `${low} ≤ ${number(-limit)}`),
    element("span", { class: "swatches", "aria-hidden": "true" }, swatches),
    element("span", { class: "legend-end" }, `≥ ${signed(limit)} ${high}`),
  ];
}

// One scale for the whole run, so that steps are comparable; the largest 2% saturate, so that outliers do not set it.
function scaleLimits(samples) {
  const tokens = samples.flatMap(tokensOf);
  return Object.fromEntries(
    Object.entries(MODES).map(([mode, { value }]) => {
      const sizes = tokens
        .map(value)
        .filter(Boolean)
        .map(Math.abs)
        .sort((a, b) => a - b);
      return [mode, sizes.length ? sizes[Math.floor(0.98 * (sizes.length - 1))] : 1];
    }),
  );
}
