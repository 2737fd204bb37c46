// The list of keys.

import { button, element } from "./dom.js";

const GROUPS = {
  "Select words": [
    ["← →", "select the word before, after"],
    ["↑ ↓", "select the sentence (in code: the line) before, after"],
    ["Shift + arrow", "extend the selection"],
    ["Shift + Alt + ← →", "extend it by a character"],
    ["Ctrl + A", "the whole answer"],
  ],
  "Say it": [
    ["g p m", "good, poor, missing"],
    ["e", "say why, and what it should have been"],
    ["Delete", "remove the mark that has the focus"],
    ["c", "write a comment"],
    ["Ctrl + Enter", "in a comment: accept what it seems to be about"],
    ["a x", "accept, drop the first suggestion"],
    ["Shift + A", "accept all suggestions"],
    ["u", "undo"],
    ["Escape", "back to the answer"],
  ],
  "Go on": [
    ["Enter or d", "done, next answer"],
    ["s", "skip"],
    ["j k", "next, previous answer"],
    ["y", "two answers side by side"],
    ["v", "code view with line numbers"],
    ["/", "search"],
    ["t", "teach the model"],
    ["?", "this list"],
  ],
};
const SETTING = "studio.shortcuts";

export const shortcutsOn = () => localStorage.getItem(SETTING) !== "off";

export function showHelp() {
  const toggle = element("input", {
    type: "checkbox",
    checked: shortcutsOn(),
    change: (event) => localStorage.setItem(SETTING, event.target.checked ? "on" : "off"),
  });
  const dialog = openDialog(
    "Keys",
    element(
      "div",
      { class: "key-groups" },
      Object.entries(GROUPS).map(([title, keys]) =>
        element(
          "section",
          {},
          element("h3", {}, title),
          element(
            "dl",
            { class: "keys" },
            keys.map(([name, does]) =>
              element("div", {}, element("dt", {}, element("kbd", {}, name)), element("dd", {}, does)),
            ),
          ),
        ),
      ),
    ),
    element("label", { class: "check" }, toggle, " Keys of one letter are on"),
  );
  return dialog;
}

// A modal window with a title and a button to close it.
export function openDialog(title, ...children) {
  const dialog = element("dialog", { "aria-label": title });
  const focused = document.activeElement;
  dialog.append(
    element(
      "div",
      { class: "dialog-head" },
      element("h2", {}, title),
      button("×", () => dialog.close(), { class: "quiet close", "aria-label": "Close" }),
    ),
    element("div", { class: "dialog-body" }, ...children),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    focused?.focus?.();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
