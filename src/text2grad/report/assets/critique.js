// A critique whose phrases are linked to the words of the completion that they refer to.

function critiqueOf(feedback, completion) {
  if (!feedback)
    return element("div", { class: "critique" }, element("p", { class: "empty" }, "No critique was recorded."));
  const characters = Array.from(completion);
  const withoutPhrase = feedback.spans.map((span, i) => [span, `span-${i}`]).filter(([span]) => !span.phrase);
  return element(
    "div",
    { class: "critique" },
    feedback.status === "failed" ? failureNote(feedback) : null,
    feedback.critique ? element("p", { class: "text", dir: "auto" }, phrasesOf(feedback, characters)) : null,
    titledList(
      "Marked",
      withoutPhrase.map(([span, target]) =>
        linkedPhrase(
          target,
          span.label,
          [`“${quote(span, characters)}”`, span.reason ? ` ${span.reason}` : ""],
          () => spanCard(span, characters),
        ),
      ),
    ),
    titledList(
      "Missing",
      feedback.omissions.map((omission, i) =>
        linkedPhrase(`omission-${i}`, "omission", [omission.text], () => [omissionCard(omission)]),
      ),
    ),
    titledList(
      "Quotes not found in the completion",
      feedback.unmatched.map((text) => element("span", { class: "unmatched" }, `“${text}”`)),
    ),
    feedback.reasoning
      ? collapsible("Reasoning", element("p", { class: "text", dir: "auto" }, feedback.reasoning))
      : null,
  );
}

function failureNote(feedback) {
  return element(
    "div",
    { class: "failure", role: "note" },
    element("strong", {}, "This critique failed. "),
    "It has no effect on training.",
    element("p", { class: "text" }, feedback.error),
    feedback.raw ? collapsible("Output of the critic", element("pre", {}, feedback.raw)) : null,
  );
}

function titledList(title, items) {
  if (items.length === 0) return null;
  return [
    element("h4", {}, title),
    element(
      "ul",
      {},
      items.map((item) => element("li", {}, item)),
    ),
  ];
}

// A phrase that highlights its targets when it is hovered, focused or pressed.
function linkedPhrase(targets, kind, children, content) {
  const node = element(
    "span",
    {
      class: `phrase ${kind}`,
      role: "button",
      tabindex: "0",
      "aria-pressed": "false",
      "data-targets": targets,
      dir: "auto",
    },
    ...children,
  );
  return withTooltip(node, content);
}

function phrasesOf(feedback, completion) {
  const characters = Array.from(feedback.critique);
  const phrases = [
    ...feedback.spans.map((span, i) => ({
      phrase: span.phrase,
      target: `span-${i}`,
      kind: span.label,
      card: () => spanCard(span, completion),
    })),
    ...feedback.omissions.map((omission, i) => ({
      phrase: omission.phrase,
      target: `omission-${i}`,
      kind: "omission",
      card: () => [omissionCard(omission)],
    })),
  ]
    .filter(({ phrase }) => phrase)
    .map((item) => ({ ...item, start: item.phrase[0], end: item.phrase[1] }));
  return segmentsOf(0, characters.length, phrases).map(({ start, end, marks }) => {
    const text = characters.slice(start, end).join("");
    if (marks.length === 0) return text;
    return linkedPhrase(marks.map((mark) => mark.target).join(" "), marks[0].kind, [text], () =>
      marks.flatMap((mark) => mark.card()),
    );
  });
}

function quote(span, characters) {
  return characters.slice(span.start, span.end).join("");
}

function spanCard(span, characters) {
  const matching =
    span.match === "fuzzy" || span.match === "freeform"
      ? ` (${span.match} match, confidence ${percent(span.confidence)})`
      : "";
  return [element("p", { class: "token-name" }, `“${quote(span, characters)}”${matching}`), spanComment(span)];
}

function omissionCard(omission) {
  const certainty = omission.confidence < 1 ? ` (confidence ${percent(omission.confidence)})` : "";
  const token = omission.insert_at === null || omission.insert_at === undefined ? "the end token" : "the token at its place";
  const text = `missing, charged to ${token}: ${omission.text}${instead(omission.insertion)}${certainty}`;
  return element("p", { class: "poor comment" }, text);
}

function targetsAround(node) {
  const own = node.closest?.("[data-targets]");
  const nodes = own ? [own] : node.classList?.contains("token") ? node.querySelectorAll("[data-targets]") : [];
  return new Set(Array.from(nodes).flatMap((each) => each.dataset.targets.split(" ")));
}

// Phrases and marks inside `root` highlight each other; a click or tap pins the highlight until the next one.
// Returns a function that clears it.
function linkHighlights(root) {
  let pinned = new Set();
  const highlight = (targets) => {
    for (const node of root.querySelectorAll("[data-targets]")) {
      node.classList.toggle(
        "highlighted",
        node.dataset.targets.split(" ").some((target) => targets.has(target)),
      );
    }
  };
  const pin = (targets) => {
    pinned = targets;
    highlight(pinned);
    for (const node of root.querySelectorAll("[aria-pressed].phrase")) {
      node.setAttribute("aria-pressed", String(node.dataset.targets.split(" ").every((target) => pinned.has(target))));
    }
  };
  const follow = (event) => {
    const targets = targetsAround(event.target);
    highlight(targets.size ? targets : pinned);
  };
  root.addEventListener("pointerover", follow);
  root.addEventListener("focusin", follow);
  root.addEventListener("pointerleave", () => highlight(pinned));
  root.addEventListener("focusout", () => highlight(pinned));
  root.addEventListener("click", (event) => {
    const targets = targetsAround(event.target);
    const again = targets.size === pinned.size && [...targets].every((target) => pinned.has(target));
    pin(again ? new Set() : targets);
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") pin(new Set());
    else if ((event.key === "Enter" || event.key === " ") && event.target.matches(".phrase")) {
      event.preventDefault();
      event.target.click();
    }
  });
  return () => pin(new Set());
}
