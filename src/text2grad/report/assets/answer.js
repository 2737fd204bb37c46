// An answer, cut where its tokens and the critic's marks begin and end. Offsets count code points, not UTF-16 units.

const MODES = {
  reward: { title: "Reward", low: "blamed", high: "praised", value: (token) => token.reward },
  advantage: { title: "Advantage", low: "discouraged", high: "encouraged", value: (token) => token.advantage },
  change: { title: "Log-prob. change", low: "less likely", high: "more likely", value: (token) => token.change },
};

function tokensOf(sample) {
  const columns = sample.tokens;
  const characters = Array.from(sample.completion);
  return columns.start.map((start, i) => {
    const [end, before, after] = [columns.end[i], columns.before[i], columns.after[i]];
    return {
      start,
      end,
      text: columns.text[i] ?? characters.slice(start, end).join(""),
      reward: columns.reward[i],
      advantage: columns.advantage[i],
      before,
      after,
      change: before === null || after === null ? null : after - before,
    };
  });
}

// What can be drawn on its own: a token, or several that share a character. Special tokens are empty pieces.
function piecesOf(tokens) {
  const pieces = [];
  for (const token of tokens) {
    const last = pieces.at(-1);
    if (last && token.start < last.end && token.start < token.end) {
      last.end = Math.max(last.end, token.end);
      last.tokens.push(token);
    } else pieces.push({ start: token.start, end: token.end, tokens: [token] });
  }
  return pieces;
}

// The critic's marks: [{ start, end, value in [-1, 1], target }], graded scores before plain spans.
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

// [start, end) in stretches over which the set of marks is constant.
function stretches(start, end, marks) {
  const inside = marks.flatMap((mark) => [mark.start, mark.end]).filter((at) => at > start && at < end);
  const bounds = [...new Set([start, ...inside, end])].sort((a, b) => a - b);
  return bounds.slice(1).map((to, i) => {
    const from = bounds[i];
    return { start: from, end: to, marks: marks.filter((mark) => mark.start < to && mark.end > from) };
  });
}

// Of several values at one place the one that matters most is shown.
function strongest(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best)) : null;
}

// The square root keeps a span's share visible when its reward is spread over many tokens.
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

function stretchNode(characters, stretch) {
  const text = characters.slice(stretch.start, stretch.end).join("");
  const targets = stretch.marks.map((mark) => mark.target).filter(Boolean);
  return targets.length ? element("span", { class: "mark", "data-targets": targets.join(" ") }, text) : text;
}

// The blank that opens a word's token is drawn apart: it is coloured only where the token before it is, too.
function leadAndBody({ start, end }, characters, spans) {
  const blank = characters.slice(start, end).findIndex((character) => character !== " ");
  const split = blank > 0 ? start + blank : start;
  const draw = (from, to) => stretches(from, to, spans).map((part) => stretchNode(characters, part));
  return [
    split > start ? element("span", { class: "lead" }, draw(start, split)) : null,
    element("span", { class: "body" }, draw(split, end)),
  ];
}

// The answer of a training sample: every token on its own, to be coloured with `colour(mode, limit)`.
function tokenAnswer(sample, tokens) {
  const characters = Array.from(sample.completion);
  const { spans } = marksOf(sample.feedback);
  const pieces = piecesOf(tokens);
  const box = element("div", {
    class: "answer text",
    dir: "auto",
    role: "group",
    "aria-label": "Answer, token by token; left and right arrow keys walk through the tokens",
  });
  let drawn = 0;
  const nodes = pieces.map((piece, i) => {
    const last = i === pieces.length - 1;
    const node =
      piece.start === piece.end
        ? endChip(last ? "end token" : "special token")
        : element("span", { class: "token" }, leadAndBody(piece, characters, spans));
    if (last && sample.feedback?.omissions.length) node.setAttribute("data-targets", omissionTargets(sample.feedback));
    if (piece.tokens.some((token) => token.text.includes("\n"))) node.classList.add("newline");
    node.tabIndex = i === 0 ? 0 : -1;
    box.append(
      characters.slice(drawn, piece.start).join(""),
      explained(node, () => explainPiece(piece, sample.feedback, last)),
    );
    drawn = piece.end;
    return node;
  });
  box.append(characters.slice(drawn).join(""));
  walkWithArrows(box, nodes);
  const colour = (mode, limit) => {
    const values = pieces.map((piece) => strongest(piece.tokens.map(MODES[mode].value)));
    nodes.forEach((node, i) => {
      paint(node, values[i], limit);
      node.classList.toggle("joined", values[i] * values[i - 1] > 0);
      node.classList.toggle("followed", values[i] * values[i + 1] > 0);
    });
  };
  return { box, colour };
}

// One tab stop for the whole answer; the arrow keys move on from there.
function walkWithArrows(box, nodes) {
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

function explainPiece(piece, feedback, last) {
  const spans = (feedback?.spans ?? []).filter((span) => span.start < piece.end && span.end > piece.start);
  return [
    ...piece.tokens.flatMap((token) => [
      element("p", { class: "token-name" }, visible(token.text) || "(empty)"),
      facts([
        ["reward", signed(token.reward)],
        ["advantage", signed(token.advantage)],
        ["probability", probabilityChange(token)],
      ]),
    ]),
    piece.tokens.length > 1
      ? element("p", { class: "note" }, "These tokens share a character; the strongest gives the colour.")
      : null,
    ...spans.map(spanVerdict),
    ...(last
      ? (feedback?.omissions ?? []).map((omission) =>
          element("p", { class: "poor verdict" }, `missing: ${omission.text}`),
        )
      : []),
  ];
}

function probabilityChange({ before, after, change }) {
  const shown = [before, after].map((logprob) => (logprob === null ? "–" : percent(Math.exp(logprob))));
  return `${shown[0]} → ${shown[1]}` + (change === null ? "" : ` (×${number(Math.exp(change))})`);
}

function spanVerdict(span) {
  const severity = span.severity === 1 ? "" : `, severity ${number(span.severity)}`;
  return element(
    "p",
    { class: `${span.label} verdict` },
    `${span.label}${severity}` + (span.reason ? `: ${span.reason}` : ""),
  );
}

// A held-out answer: no tokens are logged, so the critic's marks themselves are coloured.
function markedAnswer(completion, feedback) {
  const characters = Array.from(completion);
  const { graded } = marksOf(feedback);
  const box = element("div", { class: "answer text", dir: "auto" });
  for (const part of stretches(0, characters.length, graded)) {
    const node = stretchNode(characters, part);
    if (part.marks.length === 0) {
      box.append(node);
      continue;
    }
    const coloured = element("span", { class: "token" }, element("span", { class: "body" }, node));
    paint(coloured, strongest(part.marks.map((mark) => mark.value)), 1);
    const spans = feedback.spans.filter((span) => span.start < part.end && span.end > part.start);
    box.append(spans.length ? explained(coloured, () => spans.map(spanVerdict)) : coloured);
  }
  if (feedback?.omissions.length) {
    const chip = endChip("end of the answer", omissionTargets(feedback));
    paint(chip, -Math.max(...feedback.omissions.map((omission) => omission.severity)), 1);
    box.append(
      explained(chip, () =>
        feedback.omissions.map((omission) => element("p", { class: "poor verdict" }, `missing: ${omission.text}`)),
      ),
    );
  }
  return box;
}
