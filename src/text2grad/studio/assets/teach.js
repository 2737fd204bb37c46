// A lesson: what the feedback did to the model, before it is kept or discarded.

import { get, post } from "./api.js";
import { announce, button, element, percent, shorten } from "./dom.js";
import { compareWords } from "./diff.js";
import { openDialog } from "./help.js";

const NOTICEABLE = 1.05; // factor of a probability

export async function showTeach(editor) {
  const body = element("div", { class: "lesson" });
  const dialog = openDialog("Teach the model", body);
  dialog.classList.add("wide");
  try {
    const { pending } = await get("/api/lessons");
    if (pending) {
      drawLesson(body, dialog, pending, true);
      return;
    }
    drawWaiting(body, editor);
    drawLesson(body, dialog, await post(`${editor.path}/teach`, { annotator: editor.annotator }), false);
  } catch (error) {
    body.replaceChildren(element("p", { class: "problem", role: "alert" }, error.message));
  }
}

function drawWaiting(body, editor) {
  const began = performance.now();
  const seconds = element("span", { class: "seconds" }, "0 s");
  const count = editor.annotation.marks.length;
  body.replaceChildren(
    element(
      "p",
      { class: "waiting", role: "status" },
      `A few small steps on ${count} ${count === 1 ? "mark" : "marks"} … `,
      seconds,
    ),
    element("progress", { "aria-label": "Teaching" }),
  );
  const timer = setInterval(() => {
    if (!seconds.isConnected) clearInterval(timer);
    seconds.textContent = `${Math.round((performance.now() - began) / 1000)} s`;
  }, 500);
}

function drawLesson(body, dialog, lesson, isOld) {
  const decide = (what) => async () => {
    try {
      await post(`/api/lessons/${lesson.id}/${what}`);
      announce(what === "keep" ? "kept" : "discarded; the model is as before");
      dialog.close();
    } catch (error) {
      body.prepend(element("p", { class: "problem", role: "alert" }, error.message));
    }
  };
  const keep = button("Keep it", decide("keep"), { class: "primary" });
  body.replaceChildren(
    element(
      "p",
      { class: "lead" },
      isOld
        ? "This lesson is still waiting: keep it or discard it."
        : `Learned in ${lesson.seconds.toFixed(1)} s. Nothing is kept until you say so.`,
    ),
    ...lesson.answers.map(answerNode),
    lesson.controls.length ? controlsNode(lesson.controls) : "",
    element("div", { class: "row decide" }, button("Discard it", decide("discard")), keep),
  );
  keep.focus();
}

function answerNode(answer) {
  return element(
    "section",
    {},
    element("h3", {}, "A fresh answer to this prompt"),
    beforeAfter(answer.answer_before, answer.answer_after),
    element("h3", {}, "How likely the words are, before → after"),
    element("p", { class: "tokens", dir: "auto" }, answer.tokens.map(tokenNode)),
    answer.corrections.map((correction) =>
      element(
        "div",
        { class: "correction" },
        element("span", { class: "hint" }, "instead: "),
        element("span", { class: "tokens", dir: "auto" }, correction.tokens.map(tokenNode)),
      ),
    ),
  );
}

function tokenNode({ text, reward, before, after }) {
  const told = reward !== 0;
  const ratio = after / before;
  const direction = Math.max(ratio, 1 / ratio) < NOTICEABLE ? "same" : ratio > 1 ? "up" : "down";
  const sign = { same: "", up: "▲ ", down: "▼ " }[direction];
  if (!told) return element("span", { class: "token", title: `${percent(before)} → ${percent(after)}` }, text);
  return element(
    "span",
    { class: `token told ${reward > 0 ? "good" : "poor"} ${direction}` },
    element("span", { class: "token-text" }, text.replaceAll("\n", "↵") || "(end)"),
    element("span", { class: "token-change" }, `${sign}${percent(before)} → ${percent(after)}`),
  );
}

function beforeAfter(before, after) {
  const [old, fresh] = compareWords(before, after);
  const words = (list, tag) =>
    list.flatMap(([word, isCommon]) => {
      const blank = word.slice(0, word.length - word.trimStart().length);
      return isCommon ? word : [blank, element(tag, { class: "changed" }, word.trimStart())];
    });
  const part = (name, content) =>
    element(
      "div",
      {},
      element("h4", {}, name),
      element("p", { class: "text", dir: "auto" }, content.length ? content : element("em", {}, "(empty)")),
    );
  return element(
    "div",
    { class: "before-after" },
    part("before", words(old, "del")),
    part(before === after ? "after: the same" : "after", words(fresh, "ins")),
  );
}

function controlsNode(controls) {
  return element(
    "section",
    {},
    element("h3", {}, "Prompts that should not change"),
    controls.map((control) => {
      const same = control.answer_before === control.answer_after;
      return element(
        "details",
        { class: "control" },
        element(
          "summary",
          {},
          element("span", { class: "verdict" }, same ? "same answer" : "other answer"),
          element("span", { class: "nats" }, `${control.nats_per_token.toFixed(3)} nats per token`),
          element("span", { class: "excerpt", dir: "auto" }, shorten(control.prompt, 90)),
        ),
        beforeAfter(control.answer_before, control.answer_after),
      );
    }),
  );
}
