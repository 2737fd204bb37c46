// Held-out completions before and after training, side by side.

const OPEN_EXAMPLES = 1;
const MAX_LISTED = 60;

// One collapsed line per prompt; its content is made when it is opened first, and further lines when they are asked for.
function initExamples(examples) {
  const root = document.getElementById("examples");
  if (!root) return;
  const more = element("button", { type: "button", class: "more", click: () => list() }, "Show more");
  let listed = 0;
  const list = () => {
    const next = examples.slice(listed, listed + MAX_LISTED);
    more.before(...next.map((example, i) => comparison(example, listed + i < OPEN_EXAMPLES)));
    listed += next.length;
    more.hidden = listed >= examples.length;
  };
  root.append(more);
  list();
}

function comparison(example, open) {
  const node = element(
    "details",
    { class: "example", toggle: () => fill() },
    element(
      "summary",
      {},
      element("strong", {}, example.id),
      element("span", { class: "note", dir: "auto" }, excerpt(example.prompt)),
    ),
  );
  const fill = () => node.open && node.children.length === 1 && node.append(comparisonBody(example));
  if (open) {
    node.open = true;
    fill();
  }
  return node;
}

function comparisonBody(example) {
  return element(
    "div",
    { class: "example-body" },
    contextOf(example),
    element("div", { class: "columns even" }, side("Before", example.before), side("After", example.after)),
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
