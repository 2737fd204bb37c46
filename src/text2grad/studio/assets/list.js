// The list of answers: search, filter, progress.

import { get, query } from "./api.js";
import { button, element, key } from "./dom.js";

const PAGE = 100;
const STATUS = { open: "○", done: "●", skipped: "–" };

export class RecordList {
  // onOpen(index)
  constructor({ path, annotator, onOpen }) {
    Object.assign(this, { path, annotator, onOpen });
    this.indices = [];
    this.limit = PAGE;
    this.current = null;
    this.search = element("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": "Search answers",
      maxlength: 200,
      input: () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.load(), 200);
      },
      keydown: (event) => {
        if (event.key === "Enter" && this.indices.length) this.onOpen(this.indices[0]);
      },
    });
    this.filter = element(
      "select",
      { "aria-label": "Show", change: () => this.load() },
      [
        ["all", "All answers"],
        ["open", "To do"],
        ["done", "Done"],
        ["skipped", "Skipped"],
        ["marked", "With marks"],
      ].map(([value, label]) => element("option", { value }, label)),
    );
    this.bar = element("progress", { max: 1, value: 0, "aria-label": "Answers done" });
    this.count = element("span", { class: "count" });
    this.rows = element("ol", { class: "rows" });
    this.more = button("Show more", () => {
      this.limit += PAGE;
      this.load();
    });
    this.node = element(
      "nav",
      { class: "rail", "aria-label": "Answers", id: "rail" },
      element("div", { class: "rail-head" }, element("div", { class: "search" }, this.search, key("/")), this.filter),
      element("div", { class: "progress" }, this.bar, this.count),
      this.rows,
      this.more,
    );
  }

  async load() {
    const values = { annotator: this.annotator, text: this.search.value, shown: this.filter.value, limit: this.limit };
    const found = await get(`${this.path}/records?${query(values)}`);
    this.indices = found.indices;
    const worked = found.done + found.skipped;
    this.bar.max = found.total;
    this.bar.value = worked;
    this.count.textContent = `${found.done} of ${found.total} done${found.skipped ? `, ${found.skipped} skipped` : ""}`;
    this.total = found.total;
    this.rows.replaceChildren(...found.rows.map((row) => this.#row(row)));
    if (!found.rows.length) this.rows.append(element("li", { class: "empty" }, "No answer matches."));
    this.more.hidden = found.rows.length >= found.indices.length;
    this.select(this.current);
  }

  select(index) {
    this.current = index;
    for (const node of this.rows.querySelectorAll("a")) {
      const isCurrent = Number(node.dataset.index) === index;
      if (isCurrent) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
      if (isCurrent) node.scrollIntoView({ block: "nearest" });
    }
  }

  setMarks(index, count) {
    const node = this.rows.querySelector(`a[data-index="${index}"] .row-marks`);
    if (node) node.textContent = count ? String(count) : "";
  }

  // The answer `step` places further in the list as it is shown; null at its end.
  neighbour(index, step) {
    const at = this.indices.indexOf(index);
    if (at >= 0) return this.indices[at + step] ?? null;
    const found = step > 0 ? this.indices.find((i) => i > index) : this.indices.findLast((i) => i < index);
    return found ?? null;
  }

  #row({ index, id, excerpt, status, marks }) {
    return element(
      "li",
      {},
      element(
        "a",
        {
          href: `#${index}`,
          "data-index": index,
          class: status,
          click: (event) => {
            event.preventDefault();
            this.onOpen(index);
          },
        },
        element("span", { class: "state", "aria-hidden": "true" }, STATUS[status]),
        element(
          "span",
          { class: "row-text" },
          element("span", { class: "row-id" }, `${index + 1} · ${id}`),
          element("span", { class: "excerpt", dir: "auto" }, excerpt),
        ),
        element("span", { class: "visually-hidden" }, status === "open" ? "to do" : status),
        element("span", { class: "row-marks", title: "marks" }, marks ? String(marks) : ""),
      ),
    );
  }
}
