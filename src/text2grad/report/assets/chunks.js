// Samples are stored in compressed chunks of the page, and inflated when one of them is shown.

const MAX_CHUNKS_KEPT = 8;
const loadedChunks = new Map();

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

// The sample at a position of the index: at once if its chunk was read before, else a promise of it.
function sampleAt(position, size) {
  const number = Math.floor(position / size);
  const pick = ({ prompts, samples }) => {
    const sample = samples[position % size];
    return { ...sample, prompt: prompts[sample.prompt] };
  };
  if (loadedChunks.has(number)) return pick(loadedChunks.get(number));
  return inflate(document.getElementById(`chunk-${number}`).textContent).then((chunk) => {
    loadedChunks.set(number, chunk);
    if (loadedChunks.size > MAX_CHUNKS_KEPT) loadedChunks.delete(loadedChunks.keys().next().value);
    return pick(chunk);
  });
}
