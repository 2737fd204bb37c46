// The button that switches between the light and the dark theme.

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
