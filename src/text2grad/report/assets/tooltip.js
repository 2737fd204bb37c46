// One tooltip for the whole page, shown for the token, mark or phrase that is hovered, focused or tapped.

const tooltip = element("div", { id: "tooltip", role: "tooltip", hidden: true });
const contents = new WeakMap();

// Registers a tooltip; `content` returns its children and is called each time the tooltip opens.
function withTooltip(node, content) {
  contents.set(node, content);
  return node;
}

function tooltipAnchor(node) {
  for (let at = node; at instanceof Element; at = at.parentElement) if (contents.has(at)) return at;
  return null;
}

function showTooltip(anchor) {
  tooltip.replaceChildren(
    ...contents
      .get(anchor)()
      .flat()
      .filter((child) => child !== null),
  );
  tooltip.hidden = false;
  anchor.setAttribute("aria-describedby", "tooltip");
  const rect = anchor.getClientRects()[0];
  const { width, height } = tooltip.getBoundingClientRect();
  const gap = 8;
  const below = rect.bottom + gap;
  const top = below + height < innerHeight ? below : Math.max(gap, rect.top - gap - height);
  tooltip.style.setProperty("left", `${clamp(rect.left, gap, Math.max(gap, innerWidth - width - gap))}px`);
  tooltip.style.setProperty("top", `${top}px`);
}

function hideTooltip() {
  if (tooltip.hidden) return;
  tooltip.hidden = true;
  for (const node of document.querySelectorAll("[aria-describedby=tooltip]")) node.removeAttribute("aria-describedby");
}

function definitionList(pairs) {
  return element(
    "dl",
    {},
    pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

function initTooltip() {
  document.body.append(tooltip);
  const follow = (event) => {
    const anchor = tooltipAnchor(event.target);
    if (anchor) showTooltip(anchor);
    else hideTooltip();
  };
  for (const type of ["pointerover", "focusin", "click"]) document.addEventListener(type, follow);
  document.addEventListener("focusout", hideTooltip);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTooltip());
  addEventListener("scroll", hideTooltip, { capture: true, passive: true });
}
