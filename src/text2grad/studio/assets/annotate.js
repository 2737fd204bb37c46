// The view in which answers are annotated: list, source, and one answer or two side by side.

import { get, query } from "./api.js";
import { announce, button, element, isTyping, key } from "./dom.js";
import { Editor } from "./editor.js";
import { RecordList } from "./list.js";
import { showHelp, shortcutsOn } from "./help.js";
import { showTeach } from "./teach.js";

export class AnnotateView {
  constructor(context) {
    this.context = context;
    this.editors = [];
    this.list = new RecordList({
      path: context.path,
      annotator: context.annotator,
      onOpen: (index) => this.go(index),
    });
    this.source = element("section", { class: "source", "aria-label": "Source", tabindex: 0 });
    this.panes = element("div", { class: "panes" });
    this.actions = element("div", { class: "actions", role: "toolbar", "aria-label": "This answer" });
    this.drawer = button("Answers", () => this.toggleList(), {
      class: "drawer quiet",
      "aria-expanded": "false",
      "aria-controls": "rail",
    });
    this.work = element("div", { class: "work" }, this.source, this.panes);
    this.node = element(
      "div",
      { class: "annotate" },
      this.list.node,
      element("div", { class: "desk" }, this.work, this.actions),
      element(
        "p",
        { id: "answer-keys", class: "visually-hidden" },
        "Arrow keys select words, up and down sentences or lines; Shift extends, Alt moves by characters. Then g, p or " +
          "m marks. Question mark lists all keys.",
      ),
    );
    this.onKey = (event) => this.#onKey(event);
    document.addEventListener("keydown", this.onKey);
  }

  get editor() {
    const focused = this.editors.find((editor) => editor.node.contains(document.activeElement));
    return focused ?? this.editors.find((editor) => editor.answer.current) ?? this.editors[0];
  }

  async show(index, other = null) {
    const wanted = [index, other].filter((one) => one !== null);
    if (!(await this.#leave())) return false;
    const path = this.context.path;
    const who = query({ annotator: this.context.annotator });
    const records = await Promise.all(wanted.map((one) => get(`${path}/records/${one}?${who}`)));
    this.index = index;
    this.editors = records.map(
      (record, i) =>
        new Editor(record, {
          path,
          annotator: this.context.annotator,
          critic: this.context.session.critic,
          title: records.length > 1 ? `Answer ${"AB"[i]}` : "Answer",
          onState: this.context.onState,
          onStatus: () => this.list.load(),
          onMarks: (count) => this.list.setMarks(record.index, count),
        }),
    );
    this.record = records[0];
    this.#drawSource(records[0]);
    this.panes.replaceChildren(...this.editors.map((editor) => editor.node));
    this.panes.classList.toggle("two", records.length > 1);
    this.work.classList.toggle("two", records.length > 1);
    if (!this.list.total) await this.list.load();
    this.list.select(index);
    this.#drawActions(other);
    this.toggleList(false);
    this.context.onState("saved");
    announce(`Answer ${index + 1} of ${this.list.total}`);
    this.editors[0].focus();
    window.scrollTo(0, 0);
    return true;
  }

  async close() {
    if (!(await this.#leave())) return false;
    document.removeEventListener("keydown", this.onKey);
    return true;
  }

  async #leave() {
    for (const editor of this.editors)
      if (!(await editor.close())) {
        announce("Not saved yet: stay on this answer.");
        return false;
      }
    return true;
  }

  go(index, other = null) {
    const shown = this.editors.map((editor) => editor.record.index);
    if (shown[0] === index && (shown[1] ?? null) === other) {
      this.toggleList(false);
      this.editors[0].focus();
    } else this.context.go("annotate", index, other);
  }

  step(by) {
    const next = this.list.neighbour(this.index, by);
    if (next === null) announce(by > 0 ? "This is the last answer." : "This is the first answer.");
    else this.go(next);
  }

  async finish(status) {
    const editors = status === "skipped" ? [this.editor] : this.editors;
    const next = this.list.neighbour(this.index, 1);
    for (const editor of editors) if (!(await editor.setStatus(status))) return;
    announce(status);
    if (next === null) this.#drawActions(this.editors[1]?.record.index ?? null);
    else this.go(next);
  }

  toggleList(open = !this.node.classList.contains("list-open")) {
    this.node.classList.toggle("list-open", open);
    this.drawer.setAttribute("aria-expanded", String(open));
    if (open) this.list.search.focus();
  }

  compare() {
    if (this.editors.length > 1) this.go(this.index);
    else {
      const other = this.record.siblings[0] ?? this.list.neighbour(this.index, 1);
      if (other !== null) this.go(this.index, other);
    }
  }

  #drawSource(record) {
    const turns = typeof record.prompt === "string" ? [{ role: null, content: record.prompt }] : record.prompt;
    const references = [record.reference ?? []].flat();
    this.source.replaceChildren(
      element(
        "details",
        { open: true },
        element("summary", {}, element("h2", {}, record.source ? "Prompt and source" : "Prompt")),
        turns.map(({ role, content }) =>
          element(
            "div",
            { class: "turn" },
            role ? element("span", { class: "role" }, role) : null,
            element("p", { class: "text", dir: "auto" }, content),
          ),
        ),
        record.source ? element("p", { class: "text document", dir: "auto" }, record.source) : null,
      ),
      references.length
        ? element(
            "details",
            { class: "reference" },
            element("summary", {}, "Reference answer"),
            references.map((text) => element("p", { class: "text", dir: "auto" }, text)),
          )
        : "",
    );
  }

  #drawActions(other) {
    const status = this.editors[0].annotation.status;
    this.actions.replaceChildren(
      ...[
        this.drawer,
        element(
          "div",
          { class: "steps" },
          button("←", () => this.step(-1), { "aria-label": "Previous answer", title: "Previous (k)" }),
          element("span", { class: "where" }, `${this.index + 1} / ${this.list.total}`),
          button("→", () => this.step(1), { "aria-label": "Next answer", title: "Next (j)" }),
        ),
        button(["Undo", key("u")], () => this.editor.undo(), { class: "quiet" }),
        this.record.siblings.length || other !== null
          ? button([other === null ? "Side by side" : "One answer", key("y")], () => this.compare(), { class: "quiet" })
          : null,
        this.context.session.model
          ? button(["Teach", key("t")], () => this.teach(), { class: "teach" })
          : null,
        element("span", { class: "spring" }),
        button(["Skip", key("s")], () => this.finish("skipped"), {
          class: "quiet",
          "aria-pressed": String(status === "skipped"),
        }),
        button([status === "done" ? "Done, next" : "Done", key("↵")], () => this.finish("done"), { class: "primary" }),
      ].filter(Boolean),
    );
  }

  async teach() {
    const editor = this.editor;
    if (await editor.saver.flush()) await showTeach(editor);
  }

  #onKey(event) {
    if (event.defaultPrevented || event.altKey || document.querySelector("dialog[open]")) return;
    const control = event.ctrlKey || event.metaKey;
    if (control && event.key === "z" && !isTyping(event.target)) {
      event.preventDefault();
      this.editor.undo();
      return;
    }
    if (control || isTyping(event.target) || !this.editors.length) return;
    if (event.target.closest?.("button, summary, a") && (event.key === "Enter" || event.key === " ")) return;
    const keys = {
      g: () => this.editor.mark("good"),
      p: () => this.editor.mark("poor"),
      m: () => this.editor.mark("missing"),
      e: () => this.editor.editLast(),
      c: () => this.editor.comment.area.focus(),
      a: () => this.editor.comment.accept(),
      x: () => this.editor.comment.drop(),
      A: () => this.editor.comment.acceptAll(),
      v: () => this.editor.toggleCode(),
      u: () => this.editor.undo(),
      s: () => this.finish("skipped"),
      d: () => this.finish("done"),
      Enter: () => this.finish("done"),
      j: () => this.step(1),
      k: () => this.step(-1),
      y: () => this.compare(),
      l: () => this.toggleList(),
      t: () => this.context.session.model && this.teach(),
      "/": () => {
        this.toggleList(true);
        this.list.search.focus();
      },
      "?": () => showHelp(),
    };
    const run = keys[event.key];
    if (!run || (!shortcutsOn() && event.key.length === 1 && event.key !== "?")) return;
    event.preventDefault();
    run();
  }
}
