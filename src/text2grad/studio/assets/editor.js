// One answer with everything that an annotator does to it.

import { post } from "./api.js";
import { Answer } from "./answer.js";
import { Comment } from "./comment.js";
import { announce, button, element, key, quoted } from "./dom.js";
import { MarkList, SIGN } from "./marks.js";
import { Saver } from "./saver.js";
import { Annotation } from "./state.js";

const BROAD = 0.6;

export class Editor {
  // record: of the server. onState(state, detail): of saving. onStatus(): open, done or skipped has changed.
  // onMarks(count): so many marks are saved.
  constructor(record, { path, annotator, critic, onState, onStatus, onMarks, title }) {
    Object.assign(this, { record, annotator, onStatus, onMarks });
    this.path = `${path}/records/${record.index}`;
    this.annotation = new Annotation(record.completion, record.annotation);
    this.suggestions = [];
    this.pointed = null;
    this.answer = new Answer(record.completion, {
      label: `Answer ${record.index + 1}`,
      code: record.is_code,
      onSelect: (selected) => this.#showBar(selected),
      onMark: (id) => this.marks.edit(id),
    });
    this.saver = new Saver(`${this.path}/annotation`, {
      snapshot: () => this.annotation.toRequest(annotator),
      onSaved: ({ version, can_undo: canUndo }) => {
        Object.assign(this.annotation, { version, canUndo });
        this.onMarks(this.annotation.marks.length);
      },
      onState,
      onConflict: (current) => this.#showConflict(current),
    });
    this.marks = new MarkList(this.annotation, {
      onChange: (kind) => this.#changed(kind),
      onRemove: (id) => this.remove(id),
      onLeave: () => this.focus(),
    });
    this.comment = new Comment(this.annotation, {
      path: this.path,
      annotator,
      number: record.index,
      onText: () => this.saver.change(1),
      onAccept: (suggestions) => this.#accept(suggestions),
      onHighlight: (suggestions, pointed) => {
        this.suggestions = suggestions.filter((one) => one === pointed || !this.#isBroad(one));
        this.pointed = pointed;
        this.draw();
      },
      onLeave: () => this.focus(),
    });
    this.bar = this.#bar();
    this.banner = element("div", { class: "banner", hidden: true, role: "alert" });
    this.node = element(
      "section",
      { class: "editor", "aria-label": `Answer ${record.index + 1}` },
      element(
        "div",
        { class: "pane-head" },
        element("h2", {}, title),
        element("span", { class: "record-id" }, record.id),
        record.others.length
          ? element("span", { class: "others", title: record.others.join(", ") }, `also: ${record.others.join(", ")}`)
          : null,
        this.#viewSwitch(),
      ),
      this.banner,
      element("div", { class: "answer-box" }, this.answer.node, this.bar),
      element("div", { class: "marked" }, this.#marksTitle(), this.marks.node),
      this.comment.node,
    );
    this.marks.draw();
    this.comment.setGiven(record.suggested);
    this.draw();
    if (this.annotation.critique.trim()) this.comment.readComment();
    const known = record.suggested.some((one) => one.critic === critic);
    if (critic && !known && this.annotation.status === "open") this.#askCritic(critic);
  }

  async close() {
    const saved = await this.saver.flush();
    if (saved) {
      this.saver.closed = true;
      this.answer.close();
    }
    return saved;
  }

  focus() {
    this.answer.node.focus();
  }

  draw() {
    const marks = this.annotation.marks.map((mark, i) => ({ ...mark, number: i + 1 }));
    const suggested = this.suggestions.filter((one) => one.label !== "missing");
    this.answer.draw(
      [
        ...marks.filter((mark) => mark.label !== "missing"),
        ...suggested.map((one) => ({
          ...one,
          id: "",
          suggested: true,
          pointed: one === this.pointed,
          number: null,
        })),
      ],
      marks
        .filter((mark) => mark.label === "missing" && (mark.insertion || mark.at !== null))
        .map((mark) => ({ at: mark.at ?? this.answer.characters.length, number: mark.number, id: mark.id })),
    );
    this.title.hidden = !marks.length;
    this.hint.hidden = marks.length > 0;
  }

  mark(label) {
    const selected = this.answer.selection() ?? this.answer.current;
    if (label === "missing") {
      const mark = this.annotation.addOmission({ at: selected ? selected.end : null });
      document.getSelection().removeAllRanges();
      this.#changed("mark");
      this.marks.edit(mark.id);
      return;
    }
    if (!selected) {
      announce("Nothing is selected. Select words of the answer first.");
      this.focus();
      return;
    }
    const mark = this.annotation.addSpan({ ...selected, label });
    this.marks.open = mark.id;
    this.#changed("mark");
    this.marks.draw();
    announce(`marked ${label}: ${quoted(this.annotation.quote(mark), 100)}. Press e to say why.`);
    document.getSelection().collapseToEnd();
    this.focus();
  }

  editLast() {
    const id = this.marks.open ?? this.annotation.marks.at(-1)?.id;
    if (id) this.marks.edit(id);
  }

  remove(id) {
    this.annotation.remove(id);
    this.marks.draw();
    this.#changed("mark");
    this.comment.draw();
    announce("removed");
    this.focus();
  }

  toggleCode() {
    this.answer.code = !this.answer.code;
    this.codeButton.setAttribute("aria-pressed", String(this.answer.code));
    this.draw();
  }

  async setStatus(status) {
    this.annotation.status = status;
    this.saver.change();
    const saved = await this.saver.flush();
    this.onStatus();
    return saved;
  }

  async undo() {
    if (!(await this.saver.flush())) return;
    if (!this.annotation.canUndo) {
      announce("Nothing to undo.");
      return;
    }
    const body = { annotator: this.annotator, version: this.annotation.version };
    try {
      this.#load(await post(`${this.path}/undo`, body));
      announce("undone");
      this.onStatus();
    } catch (error) {
      if (error.body?.current) this.#showConflict(error.body.current);
      else this.saver.onState("failed", error.message);
    }
  }

  #load(annotation) {
    this.annotation.load(annotation);
    this.marks.draw();
    this.comment.load();
    this.draw();
  }

  #changed(kind) {
    this.saver.change(kind === "text" ? 1 : 0);
    this.draw();
  }

  #accept(suggestions) {
    for (const one of suggestions)
      if (one.label === "missing") this.annotation.addOmission(one);
      else this.annotation.addSpan(one);
    this.marks.draw();
    this.#changed("mark");
    announce(suggestions.length === 1 ? `accepted: ${suggestions[0].label}` : `accepted ${suggestions.length}`);
  }

  // Whether a suggestion is about most of the answer: it is shown only when it is pointed at.
  #isBroad({ start, end }) {
    return end - start > BROAD * this.answer.characters.length;
  }

  async #askCritic(name) {
    try {
      const feedback = await post(`${this.path}/critique`);
      if (feedback.status === "failed") this.comment.notes = [`${name}: ${feedback.error}`];
      else this.comment.setGiven([...this.record.suggested, { ...feedback, critic: name }]);
    } catch (error) {
      this.comment.notes = [`${name}: ${error.message}`];
    }
    this.comment.draw();
  }

  #marksTitle() {
    this.title = element("h3", {}, "Marked");
    this.hint = element(
      "p",
      { class: "hint" },
      "Select words in the answer, then press ",
      key("g"),
      " good, ",
      key("p"),
      " poor or ",
      key("m"),
      " missing.",
    );
    return element("div", {}, this.title, this.hint);
  }

  #viewSwitch() {
    this.codeButton = button(["Code view", key("v")], () => this.toggleCode(), {
      class: "quiet small",
      "aria-pressed": String(this.record.is_code),
    });
    return this.codeButton;
  }

  // Appears at the selection, or on a phone at the bottom of the screen.
  #bar() {
    const mark = (label, letter) =>
      button([`${SIGN[label]} ${label[0].toUpperCase()}${label.slice(1)}`, key(letter)], () => this.mark(label), {
        class: label,
      });
    return element(
      "div",
      {
        class: "mark-bar",
        role: "toolbar",
        "aria-label": "Mark the selected words",
        hidden: true,
        pointerdown: (event) => event.preventDefault(), // keeps the selection
      },
      mark("good", "g"),
      mark("poor", "p"),
      mark("missing", "m"),
    );
  }

  #showBar(selected) {
    this.bar.hidden = !selected;
    if (!selected) return;
    const box = this.answer.node.parentElement.getBoundingClientRect();
    const range = document.getSelection().getRangeAt(0);
    const rects = [...range.getClientRects()].filter((rect) => rect.width > 0);
    const last = rects.at(-1) ?? range.getBoundingClientRect();
    const left = Math.min(Math.max(last.right - box.left - 120, 8), Math.max(8, box.width - this.bar.offsetWidth - 8));
    this.bar.style.setProperty("--left", `${left}px`);
    this.bar.style.setProperty("--top", `${last.bottom - box.top + 8}px`);
  }

  #showConflict(current) {
    this.banner.hidden = false;
    const decide = (action) => {
      this.banner.hidden = true;
      action();
    };
    this.banner.replaceChildren(
      element("p", {}, "This answer was changed in another window under your name."),
      button("Take that version", () =>
        decide(() => {
          this.saver.dirty = false;
          this.#load(current);
          this.saver.onState("saved");
        }),
      ),
      button("Keep mine", () =>
        decide(() => {
          this.annotation.version = current.version;
          this.saver.change();
        }),
      ),
    );
  }
}
