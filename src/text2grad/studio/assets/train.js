// The model: lessons that were kept, and training runs, followed live.

import { get, post } from "./api.js";
import { announce, button, element, svg } from "./dom.js";

const EVERY = 1500;
const CURVES = ["policy_loss", "corrections/probability", "kl_per_token", "grad_norm"];

export class TrainView {
  constructor(context) {
    this.context = context;
    this.unfolded = new Set(); // runs whose output is shown
    this.lessons = element("section", { class: "card" });
    this.start = element("section", { class: "card" });
    this.runs = element("div", { class: "runs" });
    this.node = element("div", { class: "page" }, this.lessons, this.start, this.runs);
  }

  async show() {
    await this.#drawLessons();
    await this.#drawStart();
    await this.#follow();
  }

  async close() {
    clearTimeout(this.timer);
    return true;
  }

  async #drawLessons() {
    if (!this.context.session.model) {
      this.lessons.replaceChildren(
        element("h2", {}, "Lessons"),
        element("p", { class: "hint" }, "Start the studio with --model smollm2 to teach a model while you watch."),
      );
      return;
    }
    const { model, kept, pending } = await get("/api/lessons");
    const act = (path, said) => async () => {
      try {
        const answer = await post(path);
        announce(said);
        await this.#drawLessons();
        if (answer.folder) this.lessons.append(element("p", { class: "hint" }, `Saved: ${answer.folder}`));
      } catch (error) {
        this.lessons.append(element("p", { class: "problem", role: "alert" }, error.message));
      }
    };
    this.lessons.replaceChildren(
      element("h2", {}, "Lessons"),
      element(
        "p",
        {},
        `${model} has learned ${kept} ${kept === 1 ? "lesson" : "lessons"}.`,
        pending ? " One waits: open an answer and press t." : " Open an answer with marks and press t to teach it.",
      ),
      element(
        "div",
        { class: "row" },
        button("Undo the last lesson", act("/api/lessons/undo", "undone"), { disabled: !kept }),
        button("Save the model", act("/api/lessons/save", "saved"), { disabled: !kept }),
      ),
    );
  }

  async #drawStart() {
    const { annotators, comments: count } = await get(this.context.path);
    this.start.replaceChildren(
      element("h2", {}, "Train"),
      element(
        "p",
        {},
        `${count} ${count === 1 ? "answer has" : "answers have"} feedback by ${Object.keys(annotators).length || "no"} ` +
          `${Object.keys(annotators).length === 1 ? "person" : "people"}. Training runs in a process of its own; you can ` +
          "close this page.",
      ),
      element(
        "div",
        { class: "row" },
        button(
          count === 1 ? "Train on this comment" : `Train on these ${count} comments`,
          async () => {
            try {
              await post(`${this.context.path}/train`);
              await this.#follow();
            } catch (error) {
              this.start.append(element("p", { class: "problem", role: "alert" }, error.message));
            }
          },
          { class: "primary", disabled: !count },
        ),
      ),
    );
  }

  async #follow() {
    clearTimeout(this.timer);
    try {
      const runs = await get("/api/runs");
      this.runs.replaceChildren(...runs.map((run) => this.#run(run)));
      if (runs.some((run) => run.state === "running")) this.timer = setTimeout(() => this.#follow(), EVERY);
    } catch {
      this.timer = setTimeout(() => this.#follow(), EVERY);
    }
  }

  #run(run) {
    const of = run.max_steps ? ` of ${run.max_steps}` : "";
    const names = CURVES.filter((name) => run.metrics.some((record) => typeof record[name] === "number"));
    const others = Object.keys(run.metrics.at(-1) ?? {}).filter((name) => name !== "step" && !names.includes(name));
    const shown = [...names, ...others].slice(0, 4);
    return element(
      "section",
      { class: `card run ${run.state}`, "aria-label": `Run ${run.id}` },
      element(
        "div",
        { class: "pane-head" },
        element("h2", {}, run.id),
        element("span", { class: "state" }, run.state),
        run.has_report
          ? element("a", { href: `reports/${encodeURIComponent(run.id)}`, target: "_blank", rel: "noopener" }, "Report")
          : null,
        run.state === "running"
          ? button("Stop", () => post(`/api/runs/${encodeURIComponent(run.id)}/stop`), { class: "quiet small" })
          : null,
      ),
      element("p", { class: "hint" }, `${run.comments} comments, step ${run.step}${of}, ${Math.round(run.seconds)} s`),
      element("progress", { max: run.max_steps ?? 1, value: run.step, "aria-label": "Training steps" }),
      element("div", { class: "curves" }, shown.map((name) => curve(name, run.metrics))),
      element(
        "details",
        {
          open: run.state === "failed" || this.unfolded.has(run.id), // the page is drawn anew all the time
          toggle: (event) => (event.target.open ? this.unfolded.add(run.id) : this.unfolded.delete(run.id)),
        },
        element("summary", {}, "Output"),
        element("pre", { tabindex: 0 }, run.log.join("\n")),
      ),
      element("p", { class: "hint path" }, run.folder),
    );
  }
}

function curve(name, metrics) {
  const points = metrics.filter((record) => Number.isFinite(record[name])).map((record) => record[name]);
  const [low, high] = [Math.min(...points), Math.max(...points)];
  const x = (i) => (points.length > 1 ? (i / (points.length - 1)) * 116 + 2 : 60);
  const y = (value) => (high > low ? 34 - ((value - low) / (high - low)) * 30 : 19);
  const path = points.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const last = points.at(-1);
  return element(
    "figure",
    { class: "curve" },
    svg(
      "svg",
      { viewBox: "0 0 120 38", role: "img", "aria-label": `${name}: ${points.length} steps, last ${last}` },
      svg("polyline", { points: path, fill: "none" }),
    ),
    element("figcaption", {}, name, element("b", {}, last === undefined ? "–" : Number(last.toPrecision(3)).toString())),
  );
}
