// The sample browser: selects a step, one of its samples, and the value that colours its tokens.

const MAX_CHIPS = 120;

// index: columns over all samples. kept: what the reader had selected before a live page was reloaded.
// Returns a function that shows the sample at a position of the index.
function initSamples(index, kept) {
  const root = document.getElementById("sample-browser");
  if (!root || index.step.length === 0) return () => {};
  const positions = new Map();
  index.step.forEach((step, i) => positions.set(step, [...(positions.get(step) ?? []), i]));
  const steps = [...positions.keys()];
  const modes = Object.keys(MODES).filter((mode) => mode in index.limits);
  const at = steps.indexOf(kept.saved?.step);
  const state = {
    step: at < 0 ? steps.length - 1 : at,
    sample: kept.saved?.sample ?? 0,
    mode: modes.includes(kept.saved?.mode) ? kept.saved.mode : (modes[0] ?? "reward"),
    drawing: 0,
  };
  const save = () => {
    const follows = state.step === steps.length - 1;
    kept.save({ step: follows ? null : steps[state.step], sample: state.sample, mode: state.mode });
  };

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
    colour(state.mode, index.limits[state.mode] ?? 1);
    legend.replaceChildren(...legendOf(state.mode, index.limits[state.mode] ?? 1));
  };
  const show = (sample) => {
    const shown = sampleView(sample);
    colour = shown.colour;
    view.replaceChildren(...shown.children);
    clearHighlight();
    hideTooltip();
    recolour();
  };
  const draw = () => {
    const here = positions.get(steps[state.step]);
    state.sample = clamp(state.sample, 0, here.length - 1);
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", `step ${steps[state.step]}`);
    stepName.textContent = `Step ${steps[state.step]}`;
    previous.disabled = state.step === 0;
    next.disabled = state.step === steps.length - 1;
    const first = clamp(state.sample - MAX_CHIPS / 2, 0, Math.max(0, here.length - MAX_CHIPS));
    chips.replaceChildren(
      ...here
        .slice(first, first + MAX_CHIPS)
        .map((at, i) => chip(index, at, first + i === state.sample, () => select(first + i))),
    );
    save();
    const sample = sampleAt(here[state.sample], index.chunk);
    const drawing = ++state.drawing;
    if (sample instanceof Promise) sample.then((loaded) => drawing === state.drawing && show(loaded));
    else show(sample);
  };
  const goTo = (step) => {
    state.step = clamp(step, 0, steps.length - 1);
    draw();
  };
  const select = (sample) => {
    state.sample = sample;
    draw();
    chips.querySelector('[aria-pressed="true"]').focus();
  };

  chips.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    select(clamp(state.sample + move, 0, positions.get(steps[state.step]).length - 1));
  });
  document.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const elsewhere =
      event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select");
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
        modeSwitch(modes, state.mode, (mode) => {
          state.mode = mode;
          save();
          recolour();
        }),
        legend,
      ),
    ),
    view,
  );
  draw();
  return (position) => {
    state.step = steps.indexOf(index.step[position]);
    state.sample = positions.get(index.step[position]).indexOf(position);
    draw();
  };
}

function chip(index, at, selected, select) {
  const failed = Boolean(index.failed[at]);
  const total = index.total[at];
  const outcome = failed ? "failed" : signed(total);
  const kind = failed ? "failed" : total < 0 ? "poor" : total > 0 ? "good" : "neutral";
  const name = index.sample[at];
  return element(
    "button",
    {
      type: "button",
      class: `chip ${kind}`,
      "aria-pressed": String(selected),
      tabindex: selected ? "0" : "-1",
      "aria-label": `Sample ${name}, ` + (failed ? "critique failed" : `total reward ${number(total)}`),
      click: select,
    },
    element("span", { class: "chip-name" }, `#${name}`),
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
        correctionsOf(sample),
      ),
    ),
  ];
  return { children, colour };
}

// What should have been written, and how much more probable the update made it.
function correctionsOf({ corrections = [], completion, tokens }) {
  const characters = Array.from(completion);
  const items = corrections.map(({ start, end, text, before, after }) => {
    const written = characters.slice(tokens.start[start] ?? characters.length, tokens.end[end - 1] ?? 0).join("");
    const change = before == null ? "" : `: probability ${percent(before)} → ${percent(after)}`;
    return [element("q", {}, written), " should be ", element("q", {}, text), change];
  });
  return element("div", { class: "corrections" }, titledList("Corrections", items));
}

function badge(text, kind = "") {
  return element("span", { class: `badge ${kind}` }, text);
}

function modeSwitch(modes, selected, select) {
  return element(
    "fieldset",
    { class: "switch" },
    element("legend", {}, "Colour tokens by"),
    modes.map((mode) =>
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
        element("span", {}, MODES[mode].title),
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
