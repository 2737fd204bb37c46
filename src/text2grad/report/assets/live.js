// The page of a run that is going on: reloads itself when there is something new, unless it is being used.

const ASK_EVERY = 2000;
const IDLE_BEFORE_RELOAD = 1500;

function initLive() {
  const note = document.getElementById("live");
  let used = 0;
  for (const type of ["pointerdown", "pointermove", "keydown", "scroll"]) {
    addEventListener(type, () => (used = Date.now()), { passive: true });
  }
  const ask = async () => {
    try {
      const reply = await fetch("/", { method: "HEAD", cache: "no-store" });
      const version = reply.headers.get("ETag");
      if (version !== note.dataset.version && Date.now() - used > IDLE_BEFORE_RELOAD) location.reload();
      else setTimeout(ask, ASK_EVERY);
    } catch {
      note.textContent = "The run has ended, or was stopped. Its report is report.html in its folder.";
    }
  };
  setTimeout(ask, ASK_EVERY);
}

// Keeps the selected sample and colours when the page reloads; a reader of the last step follows the run.
function keptState() {
  const saved = JSON.parse(sessionStorage.getItem("samples") ?? "null");
  return { saved, save: (state) => sessionStorage.setItem("samples", JSON.stringify(state)) };
}
