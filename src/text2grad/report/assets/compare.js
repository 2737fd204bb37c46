// Entry point of the comparison: answers to the same prompts side by side, with the words marked in which they differ.

const OPEN_PAIRS = 5;
const METRIC_TITLES = { score: "score", passed: "tests passed", rouge_l: "ROUGE-L", token_f1: "token F1" };
const ORDERS = {
  data: { title: "In order", sort: null },
  better: { title: "Most improved", sort: (a, b) => gain(b) - gain(a) },
  worse: { title: "Least improved", sort: (a, b) => gain(a) - gain(b) },
};

// How much better the last answer is than the first, by the first metric that both have.
function gain({ sides }) {
  const [first, last] = [sides[0].metrics, sides.at(-1).metrics];
  const name = Object.keys(first).find((name) => name in last);
  return name ? last[name] - first[name] : 0;
}

function initPairs(examples, names) {
  const list = document.getElementById("pairs");
  if (!list) return;
  const state = { order: "data", words: "" };
  const found = element("p", { class: "note", role: "status" });
  const entries = examples.map((example) => ({ example, text: pairText(example) }));
  const draw = () => {
    const chosen = entries.filter(({ text }) => text.includes(state.words)).map(({ example }) => example);
    if (ORDERS[state.order].sort) chosen.sort(ORDERS[state.order].sort);
    found.textContent = `${chosen.length} of ${examples.length} prompts`;
    list.replaceChildren(...chosen.map((example, i) => pairEntry(example, names, i < OPEN_PAIRS)));
  };
  const buttons = Object.entries(ORDERS).map(([order, { title }]) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(order === state.order),
        click: (event) => {
          state.order = order;
          for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
          draw();
        },
      },
      title,
    ),
  );
  const search = element("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search in prompts and answers",
    input: () => {
      state.words = search.value.toLowerCase();
      draw();
    },
  });
  document.getElementById("filters").append(...buttons, search, found);
  draw();
}

function pairText({ id, prompt, sides }) {
  const texts = [id, ...turnsOf(prompt).map(({ content }) => content), ...sides.map(({ completion }) => completion)];
  return texts.join("\n").toLowerCase();
}

function pairEntry(example, names, open) {
  return lazyEntry(example, open, () =>
    element(
      "div",
      { class: "example-body" },
      contextOf(example),
      element(
        "div",
        { class: "pair-body" },
        example.sides.map((side, i) => pairSide(side, names[i], i)),
      ),
    ),
  );
}

function pairSide({ completion, segments, metrics, feedback, verdict }, name, index) {
  const section = element(
    "section",
    { "aria-label": name },
    element("h3", { class: `run-${index % 6}` }, element("span", { class: "key", "aria-hidden": "true" }), name),
    element(
      "p",
      { class: "badges" },
      Object.entries(metrics).map(([metric, value]) => badge(`${METRIC_TITLES[metric]} ${number(value)}`)),
      verdict ? badge({ first: "judged worse", second: "judged better", tie: "judged a tie" }[verdict]) : null,
    ),
    element(
      "div",
      { class: "completion text", dir: "auto" },
      completion === "" ? element("span", { class: "empty" }, "(empty)") : null,
      segments.map(([text, differs]) => (differs ? element("mark", { class: "differs" }, text) : text)),
    ),
    feedback
      ? collapsible("Feedback", spanView(completion, feedback), critiqueOf(feedback, completion))
      : null,
  );
  linkHighlights(section);
  return section;
}

const compared = JSON.parse(document.getElementById("data").textContent);
initTheme();
initTooltip();
initComparedCurves(compared.runs, compared.names);
initPairs(compared.examples, compared.names);
