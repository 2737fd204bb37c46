// A completion, split at the boundaries of its tokens and of the critic's spans. Offsets are code points.

const MODES = {
  reward: { title: "Reward", low: "blamed", high: "praised", value: (token) => token.reward },
  advantage: { title: "Advantage", low: "discouraged", high: "encouraged", value: (token) => token.advantage },
  change: { title: "Log-prob. change", low: "less likely", high: "more likely", value: (token) => token.change },
  value: { title: "Value", low: "poor ahead", high: "good ahead", value: (token) => token.value },
  kl: { title: "KL", low: "rarer than before training", high: "more frequent", value: (token) => token.kl },
  correction: {
    title: "Correction",
    low: "unlearned",
    high: "learned",
    value: (token) => token.correction,
  },
};

function tokensOf(sample) {
  const columns = sample.tokens;
  const characters = Array.from(sample.completion);
  const number = (name, i) => columns[name]?.[i] ?? null;
  return columns.start.map((start, i) => {
    const [end, before, after] = [columns.end[i], number("before", i), number("after", i)];
    const correction = (sample.corrections ?? []).find((each) => each.start <= i && i < each.end);
    return {
      start,
      end,
      text: columns.text?.[i] ?? characters.slice(start, end).join(""),
      reward: number("reward", i),
      advantage: number("advantage", i),
      value: number("value", i),
      kl: number("kl", i),
      before,
      after,
      change: before === null || after === null ? null : after - before,
      correction: correction?.before == null ? null : correction.after - correction.before,
      wanted: correction?.text ?? null,
    };
  });
}

// The units that are drawn: a token, or several tokens that share a character. Special tokens have no characters.
function unitsOf(tokens) {
  const units = [];
  for (const token of tokens) {
    const last = units.at(-1);
    if (last && token.start < last.end && token.start < token.end) {
      last.end = Math.max(last.end, token.end);
      last.tokens.push(token);
    } else units.push({ start: token.start, end: token.end, tokens: [token] });
  }
  return units;
}

// The critic's marks: [{ start, end, value in [-1, 1], target }]; `graded` prefers scores to spans.
function marksOf(feedback) {
  const spans = (feedback?.spans ?? []).map((span, i) => ({
    start: span.start,
    end: span.end,
    value: span.label === "poor" ? -span.severity : span.severity,
    target: `span-${i}`,
  }));
  const scores = (feedback?.scores ?? []).map(([start, end, value]) => ({ start, end, value, target: null }));
  return { spans, graded: scores.length ? scores : spans };
}

// Splits [start, end) into segments over which the set of marks is constant.
function segmentsOf(start, end, marks) {
  const inside = marks.flatMap((mark) => [mark.start, mark.end]).filter((at) => at > start && at < end);
  const bounds = [...new Set([start, ...inside, end])].sort((a, b) => a - b);
  return bounds.slice(1).map((to, i) => {
    const from = bounds[i];
    return { start: from, end: to, marks: marks.filter((mark) => mark.start < to && mark.end > from) };
  });
}

// The value of the largest magnitude.
function strongest(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best)) : null;
}

// The square root keeps small rewards visible, where a span spreads its reward over many tokens.
function heat(value, limit) {
  return value === null ? 0 : Math.sqrt(clamp(Math.abs(value) / limit, 0, 1));
}

function paint(node, value, limit) {
  const strength = heat(value, limit);
  node.style.setProperty("--heat", `${(strength * 100).toFixed(1)}%`);
  node.classList.toggle("poor", value < 0);
  node.classList.toggle("good", value > 0);
  node.classList.toggle("strong", strength > 0.45);
}

function endChip(name, targets) {
  return element("span", { class: "token end", role: "img", "aria-label": name, "data-targets": targets || null });
}

function omissionTargets(feedback) {
  return (feedback?.omissions ?? []).map((_, i) => `omission-${i}`).join(" ");
}

function segmentNode(characters, segment) {
  const text = characters.slice(segment.start, segment.end).join("");
  const targets = segment.marks.map((mark) => mark.target).filter(Boolean);
  return targets.length ? element("span", { class: "mark", "data-targets": targets.join(" ") }, text) : text;
}

// A token's leading blank is a separate node: it is coloured only where the previous token is coloured too.
function splitLeadingBlank({ start, end }, characters, spans) {
  const blank = characters.slice(start, end).findIndex((character) => character !== " ");
  const split = blank > 0 ? start + blank : start;
  const draw = (from, to) => segmentsOf(from, to, spans).map((part) => segmentNode(characters, part));
  return [
    split > start ? element("span", { class: "lead" }, draw(start, split)) : null,
    element("span", { class: "body" }, draw(split, end)),
  ];
}

// The completion of a training sample, token by token, coloured by calling `colour(mode, limit)`.
function tokenView(sample, tokens) {
  const characters = Array.from(sample.completion);
  const { spans } = marksOf(sample.feedback);
  const units = unitsOf(tokens);
  const box = element("div", {
    class: "completion text",
    dir: "auto",
    role: "group",
    "aria-label": "Completion, token by token; use the left and right arrow keys to move between tokens",
  });
  let drawn = 0;
  const nodes = units.map((unit, i) => {
    const last = i === units.length - 1;
    const node =
      unit.start === unit.end
        ? endChip(last ? "end token" : "special token")
        : element("span", { class: "token" }, splitLeadingBlank(unit, characters, spans));
    if (last && sample.feedback?.omissions.length) node.setAttribute("data-targets", omissionTargets(sample.feedback));
    if (unit.tokens.some((token) => token.text.includes("\n"))) node.classList.add("newline");
    node.tabIndex = i === 0 ? 0 : -1;
    box.append(
      characters.slice(drawn, unit.start).join(""),
      withTooltip(node, () => unitTooltip(unit, sample.feedback, last)),
    );
    drawn = unit.end;
    return node;
  });
  box.append(characters.slice(drawn).join(""));
  navigateWithArrows(box, nodes);
  const colour = (mode, limit) => {
    const values = units.map((unit) => strongest(unit.tokens.map(MODES[mode].value)));
    nodes.forEach((node, i) => {
      paint(node, values[i], limit);
      node.classList.toggle("joined", values[i] * values[i - 1] > 0);
      node.classList.toggle("followed", values[i] * values[i + 1] > 0);
    });
  };
  return { box, colour };
}

// One tab stop for the whole completion; the arrow keys move between its tokens.
function navigateWithArrows(box, nodes) {
  box.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const at = nodes.indexOf(document.activeElement);
    if (!move || at < 0) return;
    event.preventDefault();
    const to = clamp(at + move, 0, nodes.length - 1);
    nodes[at].tabIndex = -1;
    nodes[to].tabIndex = 0;
    nodes[to].focus();
  });
}

function unitTooltip(unit, feedback, last) {
  const spans = (feedback?.spans ?? []).filter((span) => span.start < unit.end && span.end > unit.start);
  return [
    ...unit.tokens.flatMap((token) => [
      element("p", { class: "token-name" }, showWhitespace(token.text) || "(empty)"),
      definitionList([
        ["reward", signed(token.reward)],
        ["advantage", signed(token.advantage)],
        ["probability", probabilityChange(token)],
        ...(token.value === null ? [] : [["value", signed(token.value)]]),
        ...(token.kl === null ? [] : [["KL", signed(token.kl)]]),
        ...(token.wanted === null ? [] : [["should be", showWhitespace(token.wanted)]]),
      ]),
    ]),
    unit.tokens.length > 1
      ? element("p", { class: "note" }, "These tokens share a character; the colour is that of the largest value.")
      : null,
    ...spans.map(spanComment),
    ...(last
      ? (feedback?.omissions ?? []).map((omission) =>
          element("p", { class: "poor comment" }, `missing: ${omission.text}${instead(omission.insertion)}`),
        )
      : []),
  ];
}

function probabilityChange({ before, after, change }) {
  const shown = [before, after].map((logprob) => (logprob === null ? "–" : percent(Math.exp(logprob))));
  return `${shown[0]} → ${shown[1]}` + (change === null ? "" : ` (×${number(Math.exp(change))})`);
}

function spanComment(span) {
  const severity = span.severity === 1 ? "" : `, severity ${number(span.severity)}`;
  const confidence = span.confidence === 1 ? "" : `, confidence ${number(span.confidence)}`;
  return element(
    "p",
    { class: `${span.label} comment` },
    `${span.label}${severity}${confidence}` + (span.reason ? `: ${span.reason}` : "") + instead(span.replacement),
  );
}

// What should stand in the place of a span: "" nothing, undefined unknown.
function instead(replacement) {
  return replacement === undefined ? "" : replacement ? ` → “${replacement}”` : " → delete";
}

// A held-out completion: its tokens are not logged, so the critic's spans are coloured.
function spanView(completion, feedback) {
  const characters = Array.from(completion);
  const { graded } = marksOf(feedback);
  const box = element("div", { class: "completion text", dir: "auto" });
  for (const part of segmentsOf(0, characters.length, graded)) {
    const node = segmentNode(characters, part);
    if (part.marks.length === 0) {
      box.append(node);
      continue;
    }
    const coloured = element("span", { class: "token" }, element("span", { class: "body" }, node));
    paint(coloured, strongest(part.marks.map((mark) => mark.value)), 1);
    const spans = feedback.spans.filter((span) => span.start < part.end && span.end > part.start);
    box.append(spans.length ? withTooltip(coloured, () => spans.map(spanComment)) : coloured);
  }
  if (feedback?.omissions.length) {
    const chip = endChip("end of the completion", omissionTargets(feedback));
    paint(chip, -Math.max(...feedback.omissions.map((omission) => omission.severity)), 1);
    box.append(
      withTooltip(chip, () =>
        feedback.omissions.map((omission) => element("p", { class: "poor comment" }, `missing: ${omission.text}`)),
      ),
    );
  }
  return box;
}
