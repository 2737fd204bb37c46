// The examples of the story, and the links from a sign of trouble to the samples that show it.

function initStory(examples, picked, showSample) {
  document.getElementById("picked")?.append(
    ...picked.map(([title, at]) =>
      element("div", { class: "picked-example" }, element("h3", {}, title), comparisonBody(examples[at])),
    ),
  );
  for (const link of document.querySelectorAll("[data-sample]")) {
    link.addEventListener("click", () => showSample(Number(link.dataset.sample)));
  }
}
