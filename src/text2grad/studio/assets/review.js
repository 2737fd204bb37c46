// Agreement, and decisions about differences.

import { get, put, query } from "./api.js";
import { Answer } from "./answer.js";
import { announce, button, element, percent, quoted } from "./dom.js";
import { fromFeedback } from "./comment.js";
import { SIGN } from "./marks.js";
import { Annotation } from "./state.js";

const FINAL = "adjudicated";

export class ReviewView {
  constructor(context) {
    this.context = context;
    this.summary = element("section", { class: "card" });
    this.list = element("section", { class: "card" });
    this.detail = element("section", { class: "card", hidden: true });
    this.node = element("div", { class: "page" }, this.summary, this.list, this.detail);
  }

  async show(index = null) {
    const review = await get(`${this.context.path}/review`);
    this.#drawSummary(review);
    this.#drawList(review.answers, index);
    if (index !== null) await this.#drawDetail(index);
  }

  async close() {
    this.answer?.close();
    return true;
  }

  #drawSummary({ done, people, models, agreement }) {
    const alpha = (value) => (value === null ? "–" : value.toFixed(2));
    const kind = (name) => (models.includes(name) ? `${name} (model)` : name);
    this.summary.replaceChildren(
      element("h2", {}, "Agreement"),
      element(
        "dl",
        { class: "tiles" },
        Object.entries(done).map(([name, count]) =>
          element("div", {}, element("dt", {}, name), element("dd", {}, `${count} done`)),
        ),
        people === null
          ? null
          : element("div", {}, element("dt", {}, "Krippendorff’s alpha, people"), element("dd", {}, alpha(people))),
      ),
      agreement.pairs.length
        ? element(
            "table",
            {},
            element(
              "thead",
              {},
              element(
                "tr",
                {},
                element("td", {}),
                ["words", "equal", "alpha"].map((name) => element("th", { scope: "col" }, name)),
              ),
            ),
            element(
              "tbody",
              {},
              agreement.pairs.map((pair) =>
                element(
                  "tr",
                  {},
                  element("th", { scope: "row" }, pair.annotators.map(kind).join(" and ")),
                  element("td", {}, String(pair.words)),
                  element("td", {}, pair.equal === null ? "–" : percent(pair.equal)),
                  element("td", {}, alpha(pair.alpha)),
                ),
              ),
            ),
          )
        : element("p", { class: "hint" }, "Two people, or a person and a critic, have to comment on the same answer."),
    );
  }

  #drawList(answers, current) {
    this.list.replaceChildren(
      element("h2", {}, "Answers with several opinions"),
      answers.length
        ? element(
            "ol",
            { class: "rows differences" },
            answers.map((one) =>
              element(
                "li",
                {},
                element(
                  "a",
                  {
                    href: "#",
                    "aria-current": one.index === current ? "true" : null,
                    click: (event) => {
                      event.preventDefault();
                      this.context.go("review", one.index);
                    },
                  },
                  element("span", { class: "state", "aria-hidden": "true" }, one.is_adjudicated ? "●" : "○"),
                  element("span", { class: "row-id" }, `${one.index + 1} · ${one.id}`),
                  element("span", { class: "excerpt" }, one.names.join(", ")),
                  element("span", { class: "row-marks" }, one.share ? `${percent(one.share)} differ` : "agree"),
                  one.is_adjudicated ? element("span", { class: "visually-hidden" }, "decided") : null,
                ),
              ),
            ),
          )
        : element("p", { class: "hint" }, "None yet."),
    );
  }

  async #drawDetail(index) {
    const { path } = this.context;
    const [record, opinions] = await Promise.all([
      get(`${path}/records/${index}?${query({ annotator: FINAL })}`),
      get(`${path}/records/${index}/opinions`),
    ]);
    this.answer?.close();
    this.final = new Annotation(record.completion, record.annotation);
    this.answer = new Answer(record.completion, {
      label: `Answer ${index + 1}`,
      code: record.is_code,
      onSelect: () => {},
      onMark: () => {},
    });
    this.opinions = opinions.map((one) => ({ ...one, marks: fromFeedback(one.feedback) }));
    this.state = element("span", { class: "hint", role: "status" });
    this.table = element("div", { class: "opinions" });
    const save = async () => {
      try {
        const body = { ...this.final.toRequest(FINAL), status: "done" };
        const saved = await put(`${path}/records/${index}/annotation`, body);
        this.final.version = saved.version;
        this.final.status = "done";
        this.state.textContent = "Decided and saved.";
        announce("saved");
        await this.show();
      } catch (error) {
        this.state.textContent = error.message;
      }
    };
    this.detail.hidden = false;
    this.detail.replaceChildren(
      element("div", { class: "pane-head" }, element("h2", {}, `Decide: ${record.id}`)),
      element("p", { class: "text prompt-line", dir: "auto" }, quoted(promptText(record.prompt), 300)),
      element("div", { class: "answer-box" }, this.answer.node),
      element("p", { class: "hint" }, "Choose what counts. The decision replaces all opinions in the export."),
      this.table,
      element("div", { class: "row" }, button("Save the decision", save, { class: "primary" }), this.state),
    );
    this.#drawOpinions();
    this.detail.scrollIntoView({ block: "start" });
  }

  #drawOpinions() {
    const number = (mark) => this.final.marks.indexOf(mark) + 1;
    const open = this.opinions.flatMap(({ marks }) => marks).filter((mark) => mark.label !== "missing");
    this.answer.draw([
      ...this.final.spans.map((mark) => ({ ...mark, number: number(mark) })),
      ...open.filter((mark) => !this.final.has(mark)).map((mark) => ({ ...mark, id: "", suggested: true, number: null })),
    ]);
    const same = (a, b) =>
      a.label === b.label && (a.label === "missing" ? a.text === b.text : a.start === b.start && a.end === b.end);
    this.table.replaceChildren(
      ...this.opinions.map((opinion) =>
        element(
          "section",
          { class: "opinion", "aria-label": opinion.name },
          element(
            "div",
            { class: "group-head" },
            element("h3", {}, opinion.name, opinion.is_model ? element("span", { class: "role" }, "model") : null),
            button("Take all", () => {
              for (const mark of opinion.marks) if (!this.final.has(mark)) this.#take(mark);
              this.#drawOpinions();
            }, { class: "quiet small" }),
          ),
          opinion.feedback.critique ? element("p", { class: "said", dir: "auto" }, opinion.feedback.critique) : null,
          opinion.marks.length ? null : element("p", { class: "hint" }, "no marks"),
          element(
            "ul",
            {},
            opinion.marks.map((mark) => {
              const chosen = this.final.marks.find((one) => same(one, mark));
              const quote = mark.label === "missing" ? mark.text : quoted(this.final.quote(mark), 100);
              return element(
                "li",
                {},
                element(
                  "label",
                  { class: "check" },
                  element("input", {
                    type: "checkbox",
                    checked: Boolean(chosen),
                    change: () => {
                      if (chosen) this.final.remove(chosen.id);
                      else this.#take(mark);
                      this.#drawOpinions();
                    },
                  }),
                  element("span", { class: `badge ${mark.label}` }, SIGN[mark.label]),
                  element(
                    "span",
                    { class: "what" },
                    element("span", { class: "visually-hidden" }, `${mark.label}: `),
                    element("span", { class: "quote", dir: "auto" }, quote),
                    mark.replacement ? element("ins", { dir: "auto" }, mark.replacement) : null,
                    mark.reason ? element("span", { class: "reason", dir: "auto" }, mark.reason) : null,
                  ),
                ),
              );
            }),
          ),
        ),
      ),
    );
  }

  #take(mark) {
    if (mark.label === "missing") this.final.addOmission(mark);
    else this.final.addSpan(mark);
  }
}

function promptText(prompt) {
  return typeof prompt === "string" ? prompt : prompt.map(({ content }) => content).join(" ");
}
