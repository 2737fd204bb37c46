// Which words of two texts are common: the longest common subsequence.

const MAX_CELLS = 1_000_000;

const split = (text) => text.match(/\s*\S+|\s+$/g) ?? [];

// Returns [[word, isCommon], ...] for each text; where they are very long, all of it counts as common.
export function compareWords(before, after) {
  const [a, b] = [split(before), split(after)];
  if (a.length * b.length > MAX_CELLS) return [a, b].map((words) => words.map((word) => [word, true]));
  const same = (i, j) => a[i].trim() === b[j].trim();
  const length = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      length[i][j] = same(i, j) ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const common = [new Set(), new Set()];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (same(i, j)) {
      common[0].add(i);
      common[1].add(j);
      i += 1;
      j += 1;
    } else if (length[i + 1][j] >= length[i][j + 1]) i += 1;
    else j += 1;
  }
  return [a, b].map((words, side) => words.map((word, i) => [word, common[side].has(i)]));
}
