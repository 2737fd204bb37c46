// One floating card for the whole page: it explains whatever token, mark or phrase is hovered, focused or tapped.

const tooltip = element("div", { id: "tooltip", role: "tooltip", hidden: true });
const explanations = new WeakMap();

// `explain` returns the card's children; it is called each time the card opens.
function explained(node, explain) {
  explanations.set(node, explain);
  return node;
}

function explainedAround(node) {
  for (let at = node; at instanceof Element; at = at.parentElement) if (explanations.has(at)) return at;
  return null;
}

function showTooltip(anchor) {
  tooltip.replaceChildren(
    ...explanations
      .get(anchor)()
      .flat()
      .filter((child) => child !== null),
  );
  tooltip.hidden = false;
  anchor.setAttribute("aria-describedby", "tooltip");
  const place = anchor.getClientRects()[0];
  const { width, height } = tooltip.getBoundingClientRect();
  const gap = 8;
  const below = place.bottom + gap;
  const top = below + height < innerHeight ? below : Math.max(gap, place.top - gap - height);
  tooltip.style.setProperty("left", `${clamp(place.left, gap, Math.max(gap, innerWidth - width - gap))}px`);
  tooltip.style.setProperty("top", `${top}px`);
}

function hideTooltip() {
  if (tooltip.hidden) return;
  tooltip.hidden = true;
  for (const node of document.querySelectorAll("[aria-describedby=tooltip]")) node.removeAttribute("aria-describedby");
}

function facts(pairs) {
  return element(
    "dl",
    {},
    pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

function startTooltip() {
  document.body.append(tooltip);
  const follow = (event) => {
    const anchor = explainedAround(event.target);
    if (anchor) showTooltip(anchor);
    else hideTooltip();
  };
  for (const type of ["pointerover", "focusin", "click"]) document.addEventListener(type, follow);
  document.addEventListener("focusout", hideTooltip);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTooltip());
  addEventListener("scroll", hideTooltip, { capture: true, passive: true });
}
