// The comment in words, with what it seems to be about, and what critics suggest.

import { post } from "./api.js";
import { announce, button, element, key, percent, quoted, textArea } from "./dom.js";
import { SIGN } from "./marks.js";

const PAUSE = 350;
const WHOLE = 0.9; // of the answer
const SHOWN = 5; // suggestions of a critic before the rest is asked for

export class Comment {
  // onText(text), onAccept(suggestion), onHighlight(suggestions).
  constructor(annotation, { path, annotator, number, onText, onAccept, onHighlight, onLeave }) {
    Object.assign(this, { annotation, path, annotator, onText, onAccept, onHighlight, onLeave });
    this.read = []; // of the comment
    this.given = []; // [{name, critique, suggestions}] of critics
    this.notes = [];
    this.dropped = new Set();
    this.unfolded = new Set();
    this.area = textArea(
      {
        class: "critique",
        dir: "auto",
        id: `critique-${number}`,
        maxlength: 4000,
        placeholder: "Say it in your own words: “Good start, but the number is wrong: it was 340.”",
        input: () => this.#onInput(),
        keydown: (event) => this.#onKey(event),
      },
      annotation.critique,
    );
    this.list = element("div", { class: "suggestions", "aria-live": "polite" });
    this.node = element(
      "div",
      { class: "comment" },
      element("label", { for: `critique-${number}` }, element("h3", {}, "Comment"), key("c")),
      this.area,
      this.list,
    );
  }

  load() {
    this.area.value = this.annotation.critique;
    this.area.fit();
    this.readComment();
  }

  // feedback: of critics
  setGiven(feedback) {
    this.given = feedback
      .filter((one) => one.status !== "failed")
      .map((one) => ({ name: one.critic, critique: one.critique ?? "", suggestions: fromFeedback(one) }));
    this.draw();
  }

  get pending() {
    const isPending = (one) => !this.dropped.has(one.key) && !this.annotation.has(one);
    // what is done needs no second opinion of a critic
    const given = this.annotation.status === "open" ? this.given.flatMap(({ suggestions }) => suggestions) : [];
    return [...this.read, ...given].filter(isPending);
  }

  accept(suggestion = this.pending[0]) {
    if (!suggestion) return false;
    this.onAccept([suggestion]);
    this.draw();
    return true;
  }

  acceptAll(suggestions = this.pending) {
    if (suggestions.length) this.onAccept(suggestions);
    this.draw();
  }

  drop(suggestion = this.pending[0]) {
    if (!suggestion) return false;
    this.dropped.add(suggestion.key);
    announce("dropped");
    this.draw();
    return true;
  }

  #onInput() {
    this.annotation.critique = this.area.value;
    this.onText();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.readComment(), PAUSE);
  }

  #onKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.acceptAll(this.read.filter((one) => this.pending.includes(one)));
    } else if (event.key === "Escape") this.onLeave();
  }

  async readComment() {
    this.controller?.abort();
    const critique = this.area.value;
    if (!critique.trim()) {
      this.read = [];
      this.notes = [];
      this.draw();
      return;
    }
    this.controller = new AbortController();
    try {
      const options = { signal: this.controller.signal };
      const answer = await post(`${this.path}/suggestions`, { annotator: this.annotator, critique }, options);
      if (critique !== this.area.value) return;
      const characters = Array.from(critique);
      const place = (one) => (one.span ?? one.omission).phrase?.[0] ?? 0;
      this.read = answer.suggestions
        .sort((a, b) => place(a) - place(b))
        .map((one) => fromSuggestion(one, characters));
      this.notes = [
        ...answer.not_understood.map(({ text, reason }) => `“${text}”: ${reason}`),
        ...answer.unmatched.map((text) => `“${text}” is not in the answer`),
      ];
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.notes = [error.message];
    }
  }

  draw() {
    const pending = this.pending;
    const read = pending.filter((one) => this.read.includes(one));
    const groups = [];
    if (read.length) groups.push(this.#group("This seems to be about", read, null));
    for (const { name, critique, suggestions } of this.given) {
      const own = pending.filter((one) => suggestions.includes(one));
      if (own.length) groups.push(this.#group(`${name} suggests`, own, critique));
    }
    if (this.notes.length && this.annotation.critique.trim())
      groups.push(
        element(
          "details",
          { class: "notes" },
          element("summary", {}, this.notes.length === 1 ? "1 part was not understood" : `${this.notes.length} parts were not understood`),
          element("ul", {}, this.notes.map((note) => element("li", { dir: "auto" }, note))),
        ),
      );
    this.list.replaceChildren(...groups);
    this.onHighlight(pending, null);
  }

  #group(title, suggestions, critique) {
    const shown = this.unfolded.has(title) || suggestions.length <= SHOWN + 1 ? suggestions : suggestions.slice(0, SHOWN);
    return element(
      "div",
      { class: "group", role: "group", "aria-label": title },
      element(
        "div",
        { class: "group-head" },
        element("h4", {}, title),
        suggestions.length > 1
          ? button("Accept all", () => this.acceptAll(suggestions), { class: "quiet small" })
          : null,
      ),
      critique ? element("p", { class: "said", dir: "auto" }, critique) : null,
      element("ul", {}, shown.map((one) => this.#row(one, one === this.pending[0]))),
      shown.length < suggestions.length
        ? button(
            `${suggestions.length - shown.length} more`,
            () => {
              this.unfolded.add(title);
              this.draw();
            },
            { class: "quiet small" },
          )
        : null,
    );
  }

  #row(suggestion, isNext) {
    const isWhole = suggestion.end - suggestion.start > WHOLE * this.annotation.characters.length;
    const words = suggestion.label === "missing" ? suggestion.text : quoted(this.annotation.quote(suggestion), 120);
    const quote = isWhole ? "the whole answer" : words;
    const about = element("span", { class: "visually-hidden" }, `: ${suggestion.label}, ${quote}`);
    const row = element(
      "li",
      {
        class: `suggestion ${suggestion.label}`,
        mouseenter: () => this.onHighlight(this.pending, suggestion),
        mouseleave: () => this.onHighlight(this.pending, null),
        focusin: () => this.onHighlight(this.pending, suggestion),
      },
      element("span", { class: `badge ${suggestion.label}` }, SIGN[suggestion.label]),
      element(
        "div",
        { class: "what" },
        element("span", { class: "visually-hidden" }, `${suggestion.label}: `),
        element(suggestion.replacement === null ? "span" : "del", { class: "quote", dir: "auto" }, quote),
        suggestion.replacement ? element("ins", { dir: "auto" }, suggestion.replacement) : null,
        suggestion.reason ? element("span", { class: "reason", dir: "auto" }, suggestion.reason) : null,
        suggestion.confidence < 1
          ? element("span", { class: "certainty" }, `${percent(suggestion.confidence)} sure`)
          : null,
      ),
      element(
        "div",
        { class: "choices" },
        button(["Accept", about, isNext ? key("a") : null], () => this.accept(suggestion), { class: "small" }),
        button(["Drop", about.cloneNode(true), isNext ? key("x") : null], () => this.drop(suggestion), {
          class: "quiet small",
        }),
      ),
    );
    return row;
  }
}

function fromSuggestion({ kind, span, omission, confidence }, characters) {
  const words = (phrase) => (phrase ? characters.slice(...phrase).join("") : null);
  return kind === "span"
    ? spanSuggestion({ ...span, confidence }, words(span.phrase))
    : omissionSuggestion(omission, words(omission.phrase));
}

export function fromFeedback(feedback) {
  return [
    ...(feedback.spans ?? []).map((span) => spanSuggestion(span, null)),
    ...(feedback.omissions ?? []).map((omission) => omissionSuggestion(omission, null)),
  ];
}

function spanSuggestion(span, words) {
  return {
    key: `${span.label} ${span.start} ${span.end}`,
    label: span.label,
    start: span.start,
    end: span.end,
    severity: span.severity ?? 1,
    reason: span.reason ?? null,
    replacement: span.replacement ?? null,
    match: span.match ?? "offset",
    confidence: span.confidence ?? 1,
    words,
  };
}

function omissionSuggestion(omission, words) {
  return {
    key: `missing ${omission.text}`,
    label: "missing",
    text: omission.text,
    severity: omission.severity ?? 1,
    at: omission.insert_at ?? null,
    insertion: omission.insertion ?? null,
    replacement: null,
    confidence: 1,
    words,
  };
}
