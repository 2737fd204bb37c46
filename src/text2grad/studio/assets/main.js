// Starts the studio: access, file, name, then the views. The address after # says what is shown.

import { get, post } from "./api.js";
import { AnnotateView } from "./annotate.js";
import { button, element, field } from "./dom.js";
import { showHelp } from "./help.js";
import { ReviewView } from "./review.js";
import { TrainView } from "./train.js";

const NAME = "studio.name";
const VIEWS = { annotate: ["Annotate", AnnotateView], review: ["Review", ReviewView], teach: ["Teach", TrainView] };
const STATES = {
  saved: "Saved",
  saving: "Saving …",
  retrying: "Not saved, trying again …",
  failed: "Not saved",
  conflict: "Changed elsewhere",
};
const main = document.getElementById("main");
const header = document.getElementById("top");
let session = null;
let view = null;
let shown = null; // the address that is shown
let state = null;

async function start() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname);
    try {
      session = await post("/api/session", { token });
    } catch (error) {
      askToken(error.message);
      return;
    }
  } else session = await get("/api/session");
  if (!session.ok) askToken();
  else if (!localStorage.getItem(NAME)) askName();
  else await route();
}

function route() {
  const address = location.hash;
  const [file, name, ...numbers] = address.slice(2).split("/");
  const chosen = session.files.find(({ id }) => id === file);
  if (!chosen) {
    if (session.files.length === 1) go(session.files[0].id, "annotate", 0);
    else chooseFile();
    return;
  }
  return show(address, chosen, VIEWS[name] ? name : "annotate", numbers.map(Number).filter(Number.isInteger));
}

function go(file, name, ...numbers) {
  const address = `#/${[file, name, ...numbers.filter((one) => one !== null && one !== undefined)].join("/")}`;
  if (address === location.hash) return route();
  location.hash = address;
}

async function show(address, file, name, numbers) {
  if (view && address === shown) return;
  const annotator = localStorage.getItem(NAME);
  const key = `${file.id} ${name} ${annotator}`;
  try {
    if (!view || view.key !== key) {
      if (view && !(await view.close())) {
        history.replaceState(null, "", shown);
        return;
      }
      const context = {
        session,
        annotator,
        path: `/api/files/${file.id}`,
        go: (...where) => go(file.id, ...where),
        onState: setState,
      };
      view = new VIEWS[name][1](context);
      view.key = key;
      drawHeader(file, name);
      main.replaceChildren(view.node);
    }
    document.title = `${file.name} · text2grad studio`;
    const before = shown;
    shown = address;
    if ((await view.show(...(name === "annotate" && !numbers.length ? [0] : numbers))) === false) {
      shown = before; // something is not saved yet
      history.replaceState(null, "", before);
    }
  } catch (error) {
    view = null;
    main.replaceChildren(notice("That did not work", error.message));
  }
}

function drawHeader(file, current) {
  state = element("span", { class: "save-state saved", role: "status" }, "Saved");
  const files = session.files.length > 1;
  header.replaceChildren(
    brand(),
    element(
      "h1",
      { class: "file" },
      files ? element("a", { href: "#/", title: "Choose another file" }, file.name) : file.name,
    ),
    element(
      "nav",
      { class: "views", "aria-label": "Views" },
      Object.entries(VIEWS).map(([name, [title]]) =>
        element(
          "a",
          { href: `#/${file.id}/${name}`, "aria-current": name === current ? "page" : null },
          title,
        ),
      ),
    ),
    state,
    exportMenu(file),
    button(localStorage.getItem(NAME), askName, { class: "quiet name", title: "Change your name" }),
    button("?", showHelp, { class: "quiet", "aria-label": "Keys" }),
  );
}

function brand() {
  const icon = element("img", { src: "icon.svg", alt: "", width: 22, height: 22 });
  return element("span", { class: "brand" }, icon, element("span", {}, "studio"));
}

function exportMenu(file) {
  const close = () => menu.removeAttribute("open");
  const link = (form, title) =>
    element(
      "li",
      {},
      element("a", { href: `/api/files/${file.id}/export?form=${form}`, download: true, click: close }, title),
    );
  const menu = element(
    "details",
    {
      class: "menu",
      keydown: (event) => event.key === "Escape" && close(),
      focusout: (event) => menu.contains(event.relatedTarget) || close(),
    },
    element("summary", {}, "Export"),
    element(
      "ul",
      {},
      link("feedback", "Feedback (JSON lines)"),
      link("label-studio", "Label Studio"),
      link("argilla", "Argilla"),
    ),
  );
  return menu;
}

function setState(name, detail = "") {
  if (!state) return;
  state.className = `save-state ${name}`;
  state.textContent = name === "failed" && detail ? `${STATES[name]}: ${detail}` : STATES[name];
  state.title = detail;
}

function notice(title, ...children) {
  return element("section", { class: "card narrow" }, element("h1", {}, title), ...children);
}

function askToken(problem = "") {
  const input = element("input", { type: "password", required: true, autocomplete: "off", maxlength: 200 });
  const said = element("p", { class: "problem", role: "alert" }, problem);
  const submit = async (event) => {
    event.preventDefault();
    try {
      session = await post("/api/session", { token: input.value.trim() });
      await begin();
    } catch (error) {
      said.textContent = error.message;
    }
  };
  main.replaceChildren(
    notice(
      "Token",
      element("p", {}, "The studio printed an address with a token when it was started."),
      element("form", { submit }, field("Token", input), element("button", { class: "primary" }, "Open"), said),
    ),
  );
  input.focus();
}

function begin() {
  if (!localStorage.getItem(NAME)) askName();
  else return route();
}

function askName() {
  const input = element("input", {
    type: "text",
    required: true,
    maxlength: 40,
    autocomplete: "name",
    value: localStorage.getItem(NAME) ?? "",
  });
  const submit = async (event) => {
    event.preventDefault();
    if (!input.value.trim()) return;
    if (view && !(await view.close())) return;
    localStorage.setItem(NAME, input.value.trim());
    view = null;
    shown = null;
    route();
  };
  main.replaceChildren(
    notice(
      "Who are you?",
      element("p", {}, "Your marks are saved under this name, beside those of others."),
      element("form", { submit }, field("Your name", input), element("button", { class: "primary" }, "Begin")),
    ),
  );
  input.focus();
}

function chooseFile() {
  header.replaceChildren(
    brand(),
  );
  view = null;
  shown = null;
  main.replaceChildren(
    notice(
      session.folder || "Files",
      session.files.length
        ? element(
            "ul",
            { class: "files" },
            session.files.map(({ id, name, kind }) =>
              element(
                "li",
                {},
                element("a", { href: `#/${id}/annotate/0` }, name, element("span", { class: "role" }, kind)),
              ),
            ),
          )
        : element("p", {}, "This folder has no files of answers and no runs."),
    ),
  );
}

window.addEventListener("hashchange", () => session?.ok && localStorage.getItem(NAME) && route());
window.addEventListener("beforeunload", (event) => {
  if (state && !/\bsaved\b/.test(state.className)) event.preventDefault();
});
start().catch((error) => main.replaceChildren(notice("The studio does not answer", element("p", {}, error.message))));
