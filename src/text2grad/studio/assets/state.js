// What an annotator says about one answer: marks, what is missing, and a comment.

let counter = 0;
const newId = () => `m${(counter += 1)}`;

export class Annotation {
  constructor(completion, annotation) {
    this.characters = Array.from(completion);
    this.load(annotation);
  }

  load({ version, status, feedback, can_undo: canUndo }) {
    this.version = version;
    this.status = status;
    this.canUndo = canUndo;
    this.critique = feedback.critique ?? "";
    const critique = Array.from(this.critique);
    const words = (phrase) => (phrase ? critique.slice(...phrase).join("") : null);
    this.marks = [
      ...(feedback.spans ?? []).map((span) => ({ ...span, id: newId(), words: words(span.phrase) })),
      ...(feedback.omissions ?? []).map((omission) => ({
        ...omission,
        id: newId(),
        label: "missing",
        at: omission.insert_at ?? null,
        words: words(omission.phrase),
      })),
    ];
  }

  get spans() {
    return this.marks.filter((mark) => mark.label !== "missing");
  }

  get omissions() {
    return this.marks.filter((mark) => mark.label === "missing");
  }

  addSpan({ start, end, label, severity = 1, reason = null, replacement = null, words = null, match = "offset" }) {
    const same = this.spans.find((mark) => mark.start === start && mark.end === end);
    if (same) {
      Object.assign(same, { label, replacement: label === "good" ? null : (replacement ?? same.replacement) });
      if (reason) same.reason = reason;
      return same;
    }
    const mark = { id: newId(), start, end, label, severity, reason, replacement, words, match };
    this.marks.push(mark);
    this.marks.sort((a, b) => (a.start ?? Infinity) - (b.start ?? Infinity));
    return mark;
  }

  addOmission({ text = "", severity = 1, at = null, insertion = null, words = null }) {
    const mark = { id: newId(), label: "missing", text, severity, at, insertion, words };
    this.marks.push(mark);
    return mark;
  }

  remove(id) {
    this.marks = this.marks.filter((mark) => mark.id !== id);
  }

  has(suggestion) {
    return suggestion.label === "missing"
      ? this.omissions.some((mark) => mark.text === suggestion.text)
      : this.spans.some((m) => m.start === suggestion.start && m.end === suggestion.end && m.label === suggestion.label);
  }

  quote(mark) {
    return this.characters.slice(mark.start, mark.end).join("");
  }

  // The words of the comment that a mark came from, as offsets of the comment as it is now.
  #phrase(words) {
    const at = words ? this.critique.indexOf(words) : -1;
    if (at < 0) return null;
    const start = Array.from(this.critique.slice(0, at)).length;
    return [start, start + Array.from(words).length];
  }

  toRequest(annotator) {
    return {
      annotator,
      version: this.version,
      status: this.status,
      critique: this.critique,
      spans: this.spans.map((mark) => ({
        start: mark.start,
        end: mark.end,
        quote: this.quote(mark),
        label: mark.label,
        severity: mark.severity,
        reason: mark.reason || null,
        replacement: mark.label === "good" ? null : (mark.replacement ?? null),
        phrase: this.#phrase(mark.words),
        match: mark.match ?? "offset",
      })),
      omissions: this.omissions.map((mark) => ({
        text: mark.text,
        severity: mark.severity,
        phrase: this.#phrase(mark.words),
        ...(mark.insertion ? { insertion: mark.insertion, insert_at: mark.at ?? this.characters.length } : {}),
      })),
    };
  }
}
