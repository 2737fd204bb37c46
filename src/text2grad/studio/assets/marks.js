// The list of marks, each with its editor.

import { button, element, field, quoted, segmented, textArea } from "./dom.js";

export const SIGN = { good: "+", poor: "−", missing: "^" };
const SEVERITIES = [
  [0.3, "minor"],
  [0.6, "medium"],
  [1, "serious"],
];

export class MarkList {
  // onChange(kind): "text" while typing, else "mark"; onRemove(id); onLeave(): back to the answer.
  constructor(annotation, { onChange, onRemove, onLeave }) {
    Object.assign(this, { annotation, onChange, onRemove, onLeave });
    this.open = null;
    this.node = element("ol", { class: "marks", "aria-label": "Marks" });
  }

  draw() {
    const marks = this.annotation.marks;
    this.node.hidden = !marks.length;
    this.node.replaceChildren(...marks.map((mark, i) => this.#item(mark, i + 1)));
  }

  edit(id, focus = true) {
    this.open = id;
    this.draw();
    const item = this.node.querySelector(`[data-id="${id}"]`);
    item?.scrollIntoView({ block: "nearest" });
    if (focus) item?.querySelector("textarea")?.focus();
  }

  #item(mark, number) {
    const isOpen = this.open === mark.id;
    const toggle = element(
      "button",
      {
        type: "button",
        class: "mark-head",
        "aria-expanded": String(isOpen),
        click: () => {
          this.open = isOpen ? null : mark.id;
          this.draw();
          this.node.querySelector(`[data-id="${mark.id}"] .mark-head`)?.focus();
        },
        keydown: (event) => {
          if (event.key === "Delete" || event.key === "Backspace") {
            event.preventDefault();
            this.onRemove(mark.id);
          }
        },
      },
      element("span", { class: `badge ${mark.label}` }, `${SIGN[mark.label]} ${number}`),
      element(
        "span",
        { class: "what" },
        element("span", { class: "visually-hidden" }, `${mark.label}: `),
        ...this.#summary(mark),
      ),
    );
    const item = element("li", { class: `mark-item ${mark.label}`, "data-id": mark.id }, toggle);
    if (isOpen) item.append(this.#editor(mark, number));
    return item;
  }

  #summary(mark) {
    const parts = [];
    if (mark.label === "missing") {
      parts.push(element("span", { class: "quote", dir: "auto" }, mark.text || mark.insertion || "something is missing"));
      if (mark.text && mark.insertion) parts.push(element("ins", { dir: "auto" }, mark.insertion));
    } else {
      const quote = quoted(this.annotation.quote(mark));
      const gone = mark.replacement !== null && mark.replacement !== undefined;
      parts.push(element(gone ? "del" : "span", { class: "quote", dir: "auto" }, quote));
      if (gone && mark.replacement) parts.push(element("ins", { dir: "auto" }, mark.replacement));
      if (mark.reason) parts.push(element("span", { class: "reason", dir: "auto" }, mark.reason));
    }
    return parts;
  }

  #editor(mark, number) {
    const set = (name, value, kind) => {
      mark[name] = value;
      this.onChange(kind);
      if (kind === "text") this.#refresh(mark);
    };
    const input = (name, attributes) =>
      textArea(
        { dir: "auto", maxlength: 4000, input: (event) => set(name, event.target.value, "text"), ...attributes },
        mark[name] ?? "",
      );
    const fields = [];
    const choices = [];
    if (mark.label === "missing") {
      fields.push(field("What is missing?", input("text", {})));
      fields.push(
        field(
          "Words to add (optional)",
          input("insertion", {}),
          element(
            "span",
            { class: "hint" },
            mark.at === null
              ? "They go to the end of the answer. If they belong elsewhere, select the words before them first."
              : "They go where ^ stands in the answer.",
          ),
        ),
      );
    } else {
      if (mark.label === "poor") {
        const area = input("replacement", {
          placeholder: mark.replacement === "" ? "nothing: delete these words" : "",
          input: (event) => set("replacement", event.target.value || null, "text"),
        });
        const remove = button("Delete these words", () => {
          set("replacement", mark.replacement === "" ? null : "", "mark");
          this.edit(mark.id, false);
          this.node.querySelector(`[data-id="${mark.id}"] .delete`)?.focus();
        });
        remove.className = "quiet delete";
        remove.setAttribute("aria-pressed", String(mark.replacement === ""));
        fields.push(field("What it should have been", area), remove);
      }
      fields.push(field(mark.label === "poor" ? "Why it is poor" : "Why it is good", input("reason", {})));
      choices.push(
        segmented(
          "Label",
          "label",
          [
            ["good", `${SIGN.good} good`, "good"],
            ["poor", `${SIGN.poor} poor`, "poor"],
          ],
          mark.label,
          (value) => {
            mark.label = value;
            if (value === "good") mark.replacement = null;
            this.onChange("mark");
            this.edit(mark.id, false);
            this.node.querySelector(`[data-id="${mark.id}"] input:checked`)?.focus();
          },
        ),
      );
    }
    const nearest = SEVERITIES.reduce((best, one) =>
      Math.abs(one[0] - mark.severity) < Math.abs(best[0] - mark.severity) ? one : best,
    )[0];
    const title = mark.label === "good" ? "How good" : "How bad";
    const labels = mark.label === "good" ? ["a little", "quite", "very"] : SEVERITIES.map(([, name]) => name);
    choices.push(
      segmented(
        title,
        "severity",
        SEVERITIES.map(([value], i) => [value, labels[i]]),
        nearest,
        (value) => set("severity", value, "mark"),
      ),
    );
    return element(
      "div",
      {
        class: "mark-editor",
        role: "group",
        "aria-label": `Mark ${number}`,
        keydown: (event) => {
          if (event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey))) {
            event.preventDefault();
            event.stopPropagation();
            this.open = null;
            this.draw();
            this.onLeave();
          }
        },
      },
      ...fields,
      element("div", { class: "choices" }, choices),
      element(
        "div",
        { class: "row" },
        button("Remove this mark", () => this.onRemove(mark.id), { class: "quiet" }),
        button("Close", () => {
          this.open = null;
          this.draw();
          this.onLeave();
        }),
      ),
    );
  }

  #refresh(mark) {
    const what = this.node.querySelector(`[data-id="${mark.id}"] .what`);
    what?.replaceChildren(element("span", { class: "visually-hidden" }, `${mark.label}: `), ...this.#summary(mark));
  }
}
