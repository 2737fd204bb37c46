// Elements of the page. Text enters it only as text nodes; no string is ever parsed as markup.

export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  apply(node, attributes, children);
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  apply(node, attributes, children);
  return node;
}

function apply(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
}

export function button(label, onClick, attributes = {}) {
  return element("button", { type: "button", click: onClick, ...attributes }, label);
}

export function key(name) {
  return element("kbd", { "aria-hidden": "true" }, name);
}

export function field(label, control, note = null) {
  return element("label", { class: "field" }, element("span", { class: "label" }, label), control, note);
}

// Says something to screen readers without moving the focus.
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = live.textContent === text ? `${text}\u00a0` : text;
}

// A text area that grows with its content.
export function textArea(attributes, value) {
  const area = element("textarea", { rows: 1, ...attributes });
  area.value = value;
  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
  };
  area.addEventListener("input", fit);
  area.fit = fit;
  requestAnimationFrame(fit);
  return area;
}

// One choice of several, as radio buttons that look like one control.
export function segmented(legend, name, choices, chosen, onChange) {
  const id = `${name}-${Math.random().toString(36).slice(2)}`;
  return element(
    "fieldset",
    { class: "segmented" },
    element("legend", {}, legend),
    choices.map(([value, label, style]) => {
      const input = element("input", {
        type: "radio",
        name: id,
        value,
        checked: value === chosen,
        change: () => onChange(value),
      });
      return element("label", { class: style }, input, element("span", {}, label));
    }),
  );
}

export function isTyping(target) {
  if (target instanceof HTMLInputElement) return !["radio", "checkbox"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function percent(share) {
  const value = share * 100;
  if (value > 0 && value < 0.01) return "<0.01%";
  return `${value >= 10 || value === 0 ? Math.round(value) : value.toPrecision(2)}%`;
}

export function shorten(text, length = 80) {
  const flat = text.replace(/\s+/g, " ").trim();
  const characters = Array.from(flat);
  return characters.length <= length ? flat : `${characters.slice(0, length - 1).join("")}…`;
}

// Shows white space that would be invisible as a quotation by itself.
export function quoted(text, length = 80) {
  return text.trim() ? shorten(text, length) : text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");
}
