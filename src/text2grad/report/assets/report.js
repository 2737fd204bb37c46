// Brings the page to life. The data stands in the page as JSON.

function startTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const dark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () =>
    button.setAttribute("aria-label", dark() ? "Switch to the light theme" : "Switch to the dark theme");
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    label();
  });
  label();
}

const data = JSON.parse(document.getElementById("data").textContent);
startTheme();
startTooltip();
startCurves(data.metrics);
startSamples(data.samples);
startExamples(data.examples);
