// DOM helpers and number formatting. Text enters the page only as text nodes; no string is parsed as markup.

function element(tag, attributes = {}, ...children) {
  return applyTo(document.createElement(tag), attributes, children);
}

function svgElement(tag, attributes = {}, ...children) {
  return applyTo(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function applyTo(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null));
  return node;
}

function collapsible(title, ...children) {
  return element("details", {}, element("summary", {}, title), ...children);
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const digits =
    size === 0
      ? "0"
      : size < 1e-3 || size >= 1e6
        ? value.toExponential(1)
        : size >= 1000
          ? Math.round(value).toLocaleString("en")
          : String(Number(value.toPrecision(3)));
  return digits.replaceAll("-", "−");
}

function signed(value) {
  return (value > 0 ? "+" : "") + number(value);
}

function percent(share) {
  return share === null || share === undefined ? "–" : `${number(share * 100)}%`;
}

// Replaces white space by visible symbols, for tokens that are a line break or a blank.
function showWhitespace(text) {
  return text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");
}

// The prompt and, where there is one, the reference, collapsed.
function contextOf({ prompt, reference }) {
  return element(
    "div",
    { class: "context" },
    collapsible("Prompt", turnsOf(prompt).map(turnNode)),
    reference
      ? collapsible(
          "Reference",
          [reference].flat().map((content) => turnNode({ content })),
        )
      : null,
  );
}

function turnsOf(prompt) {
  return typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
}

function turnNode({ role, content }) {
  return element(
    "div",
    { class: "turn" },
    role ? element("span", { class: "role" }, role) : null,
    element("p", { class: "text", dir: "auto" }, content),
  );
}
