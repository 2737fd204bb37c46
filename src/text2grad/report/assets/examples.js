// Held-out completions before and after training, side by side.

const OPEN_EXAMPLES = 3;

function initExamples(examples) {
  document.getElementById("examples")?.append(...examples.map((example, i) => comparison(example, i < OPEN_EXAMPLES)));
}

function comparison(example, open) {
  return element(
    "details",
    { class: "example", open },
    element(
      "summary",
      {},
      element("strong", {}, example.id),
      element("span", { class: "note", dir: "auto" }, excerpt(example.prompt)),
    ),
    element(
      "div",
      { class: "example-body" },
      contextOf(example),
      element("div", { class: "columns even" }, side("Before", example.before), side("After", example.after)),
    ),
  );
}

// An entry of a list; its body is made when it is opened first: a page may have hundreds.
function lazyEntry(example, open, bodyOf) {
  const entry = element(
    "details",
    { class: "example", open },
    element(
      "summary",
      {},
      element("strong", {}, example.id),
      element("span", { class: "note", dir: "auto" }, excerpt(example.prompt)),
    ),
  );
  const fill = () => {
    if (entry.open && entry.childElementCount === 1) entry.append(bodyOf());
  };
  entry.addEventListener("toggle", fill);
  fill();
  return entry;
}

function excerpt(prompt) {
  const text = turnsOf(prompt).findLast((turn) => turn.role === "user")?.content ?? "";
  return text.slice(0, 300).replace(/\s+/g, " ").trim();
}

function side(title, { completion, feedback }) {
  const section = element(
    "section",
    { "aria-label": title },
    element("h3", {}, title, feedback?.score === undefined ? null : badge(`score ${number(feedback.score)}`)),
    spanView(completion, feedback),
    critiqueOf(feedback, completion),
  );
  linkHighlights(section);
  return section;
}
