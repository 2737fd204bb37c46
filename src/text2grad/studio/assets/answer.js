// An answer whose words can be selected and marked. The text nodes of the element are exactly the answer.

import { announce, element, quoted } from "./dom.js";
import { codePointRange, pieces, segments, toUtf16 } from "./text.js";

const SIGNS = { good: "good", poor: "poor", missing: "missing" };

export class Answer {
  // onSelect({start, end} or null): in code points.
  constructor(text, { label, code, onSelect, onMark }) {
    this.text = text;
    this.characters = Array.from(text);
    this.code = code;
    this.onSelect = onSelect;
    this.onMark = onMark;
    this.node = element("div", {
      class: "answer",
      dir: code ? "ltr" : "auto",
      tabindex: 0,
      role: "textbox",
      "aria-readonly": "true",
      "aria-multiline": "true",
      "aria-label": label,
      "aria-describedby": "answer-keys",
      keydown: (event) => this.#onKey(event),
      click: (event) => this.#onClick(event),
      pointerdown: () => {
        this.isPressed = true; // what appears under the pointer would be selected too
      },
    });
    this.isPressed = false;
    this.current = null;
    this.listener = () => this.#onSelectionChange();
    this.release = () => {
      this.isPressed = false;
      this.#onSelectionChange(true);
    };
    document.addEventListener("selectionchange", this.listener);
    for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, this.release);
    this.units = new Map();
  }

  close() {
    document.removeEventListener("selectionchange", this.listener);
    for (const name of ["pointerup", "pointercancel"]) document.removeEventListener(name, this.release);
  }

  // marks: [{start, end, label, number, id, suggested}]; insertions: [{at, number, id}]
  draw(marks, insertions = []) {
    const selected = this.selection();
    this.node.classList.toggle("code", this.code);
    this.node.dir = this.code ? "ltr" : "auto";
    const points = insertions.map((insertion) => insertion.at);
    const draw = (from, to) => this.#pieceNodes(from, to, marks, points, insertions);
    if (this.code) {
      const lines = [];
      let at = 0;
      for (const line of this.text.split(/(?<=\n)/)) {
        const end = at + Array.from(line).length;
        lines.push(element("span", { class: "line" }, draw(at, end)));
        at = end;
      }
      this.node.replaceChildren(...lines);
    } else this.node.replaceChildren(...draw(0, this.characters.length));
    this.node.append(...insertions.filter(({ at }) => at >= this.characters.length).map(caret));
    if (selected) this.select(selected.start, selected.end);
  }

  #pieceNodes(from, to, marks, points, insertions) {
    return pieces(from, to, marks, points).flatMap(({ start, end, ranges: all }) => {
      const marked = all.filter((range) => !range.suggested || range.pointed);
      const ranges = marked.length ? marked : all; // a mark hides what is suggested for the same words
      const text = this.characters.slice(start, end).join("");
      const before = insertions.filter(({ at }) => at === start && at < this.characters.length).map(caret);
      if (!ranges.length) return [...before, text];
      const labels = [...new Set(ranges.map((range) => range.label))];
      const ends = ranges.filter((range) => range.end === end && range.number);
      const starts = ranges.some((range) => range.start === start);
      const classes = [...labels, ranges.every((range) => range.suggested) ? "suggested" : "", starts ? "begins" : ""];
      if (ranges.some((range) => range.pointed)) classes.push("pointed");
      const node = element(
        "mark",
        {
          class: classes.filter(Boolean).join(" "),
          "data-ids": ranges.map((range) => range.id).join(" "),
          "data-number": ends.map((range) => range.number).join("·") || null,
          "data-begins": starts ? ranges.map((range) => SIGNS[range.label]).join(" and ") : null,
        },
        text,
      );
      return [...before, node];
    });
  }

  // The selected range in code points, clipped to the answer; null where nothing of it is selected.
  selection() {
    const selection = document.getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0).cloneRange();
    if (!range.intersectsNode(this.node)) return null;
    const whole = document.createRange();
    whole.selectNodeContents(this.node);
    if (range.compareBoundaryPoints(Range.START_TO_START, whole) < 0)
      range.setStart(whole.startContainer, whole.startOffset);
    if (range.compareBoundaryPoints(Range.END_TO_END, whole) > 0) range.setEnd(whole.endContainer, whole.endOffset);
    const length = range.toString().length;
    if (!length) return null;
    const head = document.createRange();
    head.selectNodeContents(this.node);
    head.setEnd(range.startContainer, range.startOffset);
    const start = head.toString().length;
    return codePointRange(this.text, start, start + length);
  }

  // backward: the end that Shift and an arrow key move is the first one.
  select(start, end, backward = false) {
    const [from, to] = [this.#position(start), this.#position(end, true)];
    const [anchor, focus] = backward ? [to, from] : [from, to];
    document.getSelection().setBaseAndExtent(anchor.node, anchor.offset, focus.node, focus.offset);
  }

  slice({ start, end }) {
    return this.characters.slice(start, end).join("");
  }

  #position(codePoint, isEnd = false) {
    let left = toUtf16(this.characters, codePoint);
    const walker = document.createTreeWalker(this.node, NodeFilter.SHOW_TEXT);
    let node = null;
    while (walker.nextNode()) {
      node = walker.currentNode;
      if (left < node.length || (isEnd && left === node.length)) return { node, offset: left };
      left -= node.length;
    }
    return node ? { node, offset: node.length } : { node: this.node, offset: 0 };
  }

  #onSelectionChange(isReleased = false) {
    const selected = this.selection();
    const isSame = selected?.start === this.current?.start && selected?.end === this.current?.end;
    if (isSame && !isReleased) return;
    this.current = selected;
    this.onSelect(this.isPressed ? null : selected);
  }

  #onClick(event) {
    const mark = event.target.closest("mark, .caret");
    if (mark && document.getSelection().isCollapsed) this.onMark(mark.dataset.ids.split(" ")[0]);
  }

  #unitsOf(granularity) {
    if (!this.units.has(granularity)) this.units.set(granularity, segments(this.text, granularity));
    return this.units.get(granularity);
  }

  #onKey(event) {
    const backwards = getComputedStyle(this.node).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
    const moves = { ArrowLeft: 1, ArrowRight: 1, ArrowUp: 1, ArrowDown: 1, Home: 1, End: 1 };
    if ((event.ctrlKey || event.metaKey) && event.key === "a") {
      event.preventDefault();
      this.select(0, this.characters.length);
    } else if (event.key === "Escape") {
      document.getSelection().removeAllRanges();
    } else if (moves[event.key] && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      const vertical = event.key.length < 10 && /Up|Down/.test(event.key);
      const granularity = event.altKey ? "grapheme" : vertical ? (this.code ? "line" : "sentence") : "word";
      const back = event.key === backwards || event.key === "ArrowUp" || event.key === "Home";
      this.#move(granularity, back, event.shiftKey, event.key === "Home" || event.key === "End");
    }
  }

  // Selects the next unit, or with `extend` moves the end of the selection that moved last.
  #move(granularity, back, extend, whole) {
    const units = this.#unitsOf(granularity);
    if (!units.length) return;
    const now = this.selection();
    const selection = document.getSelection();
    if (!now) {
      const first = back && !whole ? units.at(-1) : whole && !back ? units.at(-1) : units[0];
      this.select(first.start, first.end);
    } else if (extend) {
      const backward =
        selection.anchorNode === selection.focusNode
          ? selection.anchorOffset > selection.focusOffset
          : Boolean(selection.anchorNode.compareDocumentPosition(selection.focusNode) & Node.DOCUMENT_POSITION_PRECEDING);
      const [anchor, focus] = backward ? [now.end, now.start] : [now.start, now.end];
      let moved;
      if (whole) moved = back ? 0 : this.characters.length;
      else if (back) moved = units.findLast((unit) => unit.start < focus)?.start ?? 0;
      else moved = units.find((unit) => unit.end > focus)?.end ?? this.characters.length;
      if (moved === anchor) return;
      this.select(Math.min(anchor, moved), Math.max(anchor, moved), moved < anchor);
    } else {
      let unit;
      if (whole) unit = back ? units[0] : units.at(-1);
      else if (back) unit = units.findLast((one) => one.end <= now.start) ?? units[0];
      else unit = units.find((one) => one.start >= now.end) ?? units.at(-1);
      this.select(unit.start, unit.end);
    }
    const selected = this.selection();
    if (selected) announce(`selected: ${quoted(this.slice(selected), 200)}`);
    selection.focusNode?.parentElement?.scrollIntoView({ block: "nearest" });
  }
}

function caret({ number, id }) {
  return element("span", { class: "caret", "data-number": number, "data-ids": id, "aria-hidden": "true" });
}
