// Entry point. The data is embedded in the page as JSON.

function initTheme() {
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
initTheme();
initTooltip();
initCurves(data.metrics);
initSamples(data.samples);
initExamples(data.examples);
