// A critique whose phrases point into the answer, and the lights that show where.

function critiqueOf(feedback, completion) {
  if (!feedback)
    return element("div", { class: "critique" }, element("p", { class: "empty" }, "No critique was recorded."));
  const characters = Array.from(completion);
  const nowhere = feedback.spans.map((span, i) => [span, `span-${i}`]).filter(([span]) => !span.phrase);
  return element(
    "div",
    { class: "critique" },
    feedback.status === "failed" ? failure(feedback) : null,
    feedback.critique ? element("p", { class: "text", dir: "auto" }, phrasesOf(feedback, characters)) : null,
    list(
      "Marked",
      nowhere.map(([span, target]) =>
        pointer(target, span.label, [`“${quote(span, characters)}”`, span.reason ? ` ${span.reason}` : ""], () =>
          spanCard(span, characters),
        ),
      ),
    ),
    list(
      "Missing",
      feedback.omissions.map((omission, i) =>
        pointer(`omission-${i}`, "omission", [omission.text], () => [omissionCard(omission)]),
      ),
    ),
    list(
      "Quotes not found in the answer",
      feedback.unmatched.map((text) => element("span", { class: "unmatched" }, `“${text}”`)),
    ),
    feedback.reasoning ? folded("Reasoning", element("p", { class: "text", dir: "auto" }, feedback.reasoning)) : null,
  );
}

function failure(feedback) {
  return element(
    "div",
    { class: "failure", role: "note" },
    element("strong", {}, "This critique failed. "),
    "The answer was masked out of training.",
    element("p", { class: "text" }, feedback.error),
    feedback.raw ? folded("What the critic returned", element("pre", {}, feedback.raw)) : null,
  );
}

function list(title, items) {
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

// Something that can be hovered, focused or pressed to light what it points at.
function pointer(targets, kind, children, explain) {
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
  return explained(node, explain);
}

function phrasesOf(feedback, answer) {
  const characters = Array.from(feedback.critique);
  const pointing = [
    ...feedback.spans.map((span, i) => ({
      phrase: span.phrase,
      target: `span-${i}`,
      kind: span.label,
      card: () => spanCard(span, answer),
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
  return stretches(0, characters.length, pointing).map(({ start, end, marks }) => {
    const text = characters.slice(start, end).join("");
    if (marks.length === 0) return text;
    return pointer(marks.map((mark) => mark.target).join(" "), marks[0].kind, [text], () =>
      marks.flatMap((mark) => mark.card()),
    );
  });
}

function quote(span, characters) {
  return characters.slice(span.start, span.end).join("");
}

function spanCard(span, characters) {
  const how =
    span.match === "fuzzy" || span.match === "freeform"
      ? ` (${span.match} match, confidence ${percent(span.confidence)})`
      : "";
  return [element("p", { class: "token-name" }, `“${quote(span, characters)}”${how}`), spanVerdict(span)];
}

function omissionCard(omission) {
  return element("p", { class: "poor verdict" }, `missing, charged to the end token: ${omission.text}`);
}

function targetsAround(node) {
  const own = node.closest?.("[data-targets]");
  const nodes = own ? [own] : node.classList?.contains("token") ? node.querySelectorAll("[data-targets]") : [];
  return new Set(Array.from(nodes).flatMap((each) => each.dataset.targets.split(" ")));
}

// Phrases and marks inside `root` light each other; a click or tap keeps the light on until the next one.
// Returns a function that puts it out.
function lightLinks(root) {
  let pinned = new Set();
  const light = (targets) => {
    for (const node of root.querySelectorAll("[data-targets]")) {
      node.classList.toggle(
        "lit",
        node.dataset.targets.split(" ").some((target) => targets.has(target)),
      );
    }
  };
  const pin = (targets) => {
    pinned = targets;
    light(pinned);
    for (const node of root.querySelectorAll("[aria-pressed].phrase")) {
      node.setAttribute("aria-pressed", String(node.dataset.targets.split(" ").every((target) => pinned.has(target))));
    }
  };
  const follow = (event) => {
    const targets = targetsAround(event.target);
    light(targets.size ? targets : pinned);
  };
  root.addEventListener("pointerover", follow);
  root.addEventListener("focusin", follow);
  root.addEventListener("pointerleave", () => light(pinned));
  root.addEventListener("focusout", () => light(pinned));
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
