// Offsets. The server counts code points of the answer; the DOM counts UTF-16 code units.

export function toCodePoints(text, utf16, roundUp = false) {
  let count = 0;
  let at = 0;
  while (at < utf16) {
    const next = at + (text.codePointAt(at) > 0xffff ? 2 : 1);
    if (next > utf16 && !roundUp) break; // inside a pair
    at = next;
    count += 1;
  }
  return count;
}

export function toUtf16(characters, codePoint) {
  let units = 0;
  for (let i = 0; i < codePoint; i += 1) units += characters[i].length;
  return units;
}

// Code points of [start, end) UTF-16 units; a half character counts as a whole one.
export function codePointRange(text, start, end) {
  return { start: toCodePoints(text, start), end: toCodePoints(text, end, true) };
}

// The ranges, in code points, that the arrow keys move over.
export function segments(text, granularity) {
  const found = [];
  if (granularity === "line") {
    let at = 0;
    for (const line of text.split(/(?<=\n)/)) {
      const length = Array.from(line).length;
      if (line.trim()) found.push({ start: at, end: at + Array.from(line.trimEnd()).length });
      at += length;
    }
    return found;
  }
  let at = 0;
  for (const { segment } of new Intl.Segmenter(undefined, { granularity }).segment(text)) {
    const length = Array.from(segment).length;
    if (granularity === "grapheme" || segment.trim())
      found.push({ start: at, end: at + (granularity === "sentence" ? Array.from(segment.trimEnd()).length : length) });
    at += length;
  }
  return found;
}

// Splits [start, end) where the set of ranges over it changes, and at the given points.
export function pieces(start, end, ranges, points = []) {
  const inside = [...ranges.flatMap((range) => [range.start, range.end]), ...points];
  const bounds = [...new Set([start, ...inside.filter((at) => at > start && at < end), end])].sort((a, b) => a - b);
  return bounds.slice(1).map((to, i) => ({
    start: bounds[i],
    end: to,
    ranges: ranges.filter((range) => range.start < to && range.end > bounds[i]),
  }));
}
