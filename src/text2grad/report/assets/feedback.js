// Entry point of the page of a feedback file: completions with their feedback, filtered by what was said.

const OPEN_FEEDBACK = 10;
const KINDS = {
  all: { title: "All", has: () => true },
  poor: { title: "Blame", has: ({ feedback }) => isValid(feedback) && feedback.spans.some(({ label }) => label === "poor") },
  good: { title: "Praise", has: ({ feedback }) => isValid(feedback) && feedback.spans.some(({ label }) => label === "good") },
  missing: { title: "Missing", has: ({ feedback }) => isValid(feedback) && feedback.omissions.length > 0 },
  failed: { title: "Failed", has: ({ feedback }) => feedback?.status === "failed" },
  none: { title: "No effect", has: ({ feedback }) => !isValid(feedback) || isNeutral(feedback) },
};

function isValid(feedback) {
  return feedback !== undefined && feedback.status !== "failed";
}

function isNeutral({ spans, omissions, score, scores }) {
  return spans.length + omissions.length === 0 && score === undefined && scores === undefined;
}

function initFeedback(examples) {
  const list = document.getElementById("feedback");
  const state = { kind: "all", words: "" };
  const found = element("p", { class: "note", role: "status" });
  const entries = examples.map((example) => ({ example, text: searchText(example) }));
  const draw = () => {
    const chosen = entries
      .filter(({ example, text }) => KINDS[state.kind].has(example) && text.includes(state.words))
      .map(({ example }) => example);
    found.textContent = `${chosen.length} of ${examples.length} completions`;
    list.replaceChildren(...chosen.map((example, i) => feedbackEntry(example, i < OPEN_FEEDBACK)));
  };
  const buttons = Object.entries(KINDS)
    .map(([kind, { title, has }]) => [kind, title, examples.filter(has).length])
    .filter(([kind, , count]) => kind === "all" || count > 0)
    .map(([kind, title, count]) =>
      element(
        "button",
        {
          type: "button",
          "aria-pressed": String(kind === state.kind),
          "data-kind": kind,
          click: (event) => {
            state.kind = kind;
            for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
            draw();
          },
        },
        `${title} ${count}`,
      ),
    );
  const search = element("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search in prompts, completions and comments",
    input: () => {
      state.words = search.value.toLowerCase();
      draw();
    },
  });
  document.getElementById("filters").append(...buttons, search, found);
  draw();
}

function searchText({ id, prompt, completion, feedback }) {
  const said = [feedback?.critique, feedback?.error, ...(feedback?.spans ?? []).map(({ reason }) => reason)];
  return [id, ...turnsOf(prompt).map(({ content }) => content), completion, ...said].join("\n").toLowerCase();
}

function feedbackEntry(example, open) {
  return lazyEntry(example, open, () => {
    const { completion, feedback } = example;
    const body = element(
      "div",
      { class: "example-body" },
      contextOf(example),
      element(
        "div",
        { class: "columns even" },
        element("section", { "aria-label": "Completion" }, spanView(completion ?? "", feedback)),
        element(
          "section",
          { "aria-label": "Feedback" },
          feedback?.score === undefined ? null : element("p", {}, badge(`score ${number(feedback.score)}`)),
          critiqueOf(feedback, completion ?? ""),
        ),
      ),
    );
    linkHighlights(body);
    return body;
  });
}

initTheme();
initTooltip();
initFeedback(JSON.parse(document.getElementById("data").textContent));
