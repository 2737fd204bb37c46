"""The page in Chromium: annotating by keyboard and mouse, teaching, two people, a killed server."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from studio_support import COMPLETIONS, ScriptedTeacher, StudioProcess, make_studio, read_lines, running

from text2grad.schema import Example, write_examples
from text2grad.studio import exports
from text2grad.studio.training_runs import TrainingRun

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from studio_browser import drag, enter, open_answer, saved, spans_of

PLAIN = COMPLETIONS["plain"]
AXE = os.environ.get("TEXT2GRAD_AXE") or str(Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js")


def download(page: Page, kind: str, path: Path) -> Path:
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as started:
        page.get_by_role("link", name=kind).click()
    started.value.save_as(path)
    return path


def test_five_answers_by_keyboard(context: BrowserContext, answers: Path, tmp_path: Path) -> None:
    with running(make_studio(answers)) as url:
        page = enter(context, url)
        keys = page.keyboard

        def press(name: str, times: int = 1) -> None:
            for _ in range(times):
                keys.press(name)

        press("ArrowRight", 7)  # Friday
        press("p")
        press("e")
        keys.type("Monday")  # what it should have been
        press("Tab", 2)
        keys.type("It was Monday.")
        press("Escape")
        press("m")
        keys.type("the repairs")
        press("Escape")
        saved(page)
        press("Enter")

        expect(page.get_by_role("textbox", name="Answer 2", exact=True)).to_be_focused()
        press("ArrowRight", 2)
        press("Shift+ArrowRight")
        press("g")  # the family and the team
        saved(page)
        press("Enter")

        expect(page.get_by_role("textbox", name="Answer 3", exact=True)).to_be_focused()
        press("c")
        keys.type('"Sunday\u0323\u0307s" is wrong.')
        expect(page.locator(".suggestion")).to_have_count(1)
        press("Escape")
        press("a")  # accept what the comment seems to be about
        expect(page.locator(".suggestion")).to_have_count(0)
        saved(page)
        press("Enter")

        expect(page.get_by_role("textbox", name="Answer 4", exact=True)).to_be_focused()
        press("ArrowDown", 2)  # the second line of the program
        press("Shift+Alt+ArrowRight")  # and its line break
        press("p")
        press("u")  # undo
        expect(page.locator(".mark-item")).to_have_count(0)
        press("ArrowDown", 3)
        press("p")
        saved(page)
        press("Enter")

        expect(page.get_by_role("textbox", name="Answer 5", exact=True)).to_be_focused()
        press("ArrowLeft", 2)  # the text runs from right to left
        press("g")
        saved(page)
        press("Enter")
        expect(page.locator(".count")).to_have_text("5 of 6 done")
        exported = read_lines(download(page, "Feedback", tmp_path / "out.jsonl"))
    words = {line["id"]: spans_of(line["feedback"], line["completion"]) for line in exported}
    assert words["plain"] == ["Friday"]
    (span,) = exported[0]["feedback"]["spans"]
    assert (span["replacement"], span["reason"]) == ("Monday", "It was Monday.")
    assert [omission["text"] for omission in exported[0]["feedback"]["omissions"]] == ["the repairs"]
    assert words["emoji"] == ["\U0001f469\u200d\U0001f469\u200d\U0001f467 team"]
    assert words["combining"] == ["Sunday\u0323\u0307s"]
    assert words["code"] == ["\t\treturn x"]
    assert words["hebrew"] == [COMPLETIONS["hebrew"].split()[1]]


def test_five_answers_by_mouse(context: BrowserContext, answers: Path, tmp_path: Path) -> None:
    wanted = {
        "plain": "on Friday because 430 bolts",
        "emoji": "team! \U0001f389\U0001f389 Don't",
        "combining": "Zo\u0308e\u0308 opens",
        "code": "if x < 0:\n\t\treturn x",
        "hebrew": COMPLETIONS["hebrew"][5:17],
        "breaks": "line.\r\nSecond\tline.\n\n  Th",
    }
    selected = {}
    with running(make_studio(answers)) as url:
        page = enter(context, url)
        for index, (name, words) in enumerate(wanted.items()):
            open_answer(page, index)
            selected[name] = drag(page, COMPLETIONS[name], words)
            page.get_by_role("button", name="Poor").click()
            page.get_by_label("Why it is poor").fill(f"mark on {name}")
            saved(page)
            page.get_by_role("button", name="Done").click()
        expect(page.locator(".count")).to_have_text("6 of 6 done")
        exported = read_lines(download(page, "Feedback", tmp_path / "out.jsonl"))
        label_studio = json.loads(download(page, "Label Studio", tmp_path / "ls.json").read_text())
    for line in exported:
        name = line["id"]
        assert spans_of(line["feedback"], line["completion"]) == [selected[name]]
        assert selected[name] == wanted[name]
        assert line["feedback"]["spans"][0]["reason"] == f"mark on {name}"
    assert [task["annotations"][0]["result"][0]["value"]["text"] for task in label_studio] == list(wanted.values())


_RANGES = """
async ([text, ranges, code]) => {
  const { Answer } = await import("/answer.js");
  const answer = new Answer(text, { label: "x", code, onSelect: () => {}, onMark: () => {} });
  document.body.append(answer.node);
  const mark = (start, end, label) => ({ start, end, label, id: label, number: 1 });
  answer.draw([mark(2, 9, "poor"), mark(5, 12, "good")], [{ at: 7, number: 2, id: "c" }]);
  if (answer.node.textContent !== text) throw new Error("the text has changed");
  const nodes = [];
  const walker = document.createTreeWalker(answer.node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) nodes.push(walker.currentNode);
  const place = (offset) => {
    for (const node of nodes) {
      if (offset <= node.length) return [node, offset];
      offset -= node.length;
    }
  };
  const found = ranges.map(([start, end]) => {
    const [from, to] = [place(start), place(end)];
    document.getSelection().setBaseAndExtent(...from, ...to);
    const { start: first, end: last } = answer.selection();
    answer.select(first, last);
    const again = answer.selection();
    return [document.getSelection().getRangeAt(0).toString(), first, last, again.start, again.end];
  });
  answer.close();
  answer.node.remove();
  return found;
}
"""


def test_every_selection_is_counted_exactly(context: BrowserContext, answers: Path) -> None:
    """Any selection between characters, over marks and lines: code points of Python, and back again."""
    draw = random.Random(0)
    with running(make_studio(answers)) as url:
        page = enter(context, url)
        for text in COMPLETIONS.values():
            units = [len(text[:at].encode("utf-16-le")) // 2 for at in range(len(text) + 1)]
            pairs = [sorted(draw.sample(range(len(text) + 1), 2)) for _ in range(60)]
            for code in (False, True):
                ranges = [[units[start], units[end]] for start, end in pairs]
                found = page.evaluate(_RANGES, [text, ranges, code])
                assert found == [[text[a:b], a, b, a, b] for a, b in pairs]


def test_half_of_an_emoji_is_the_whole_one(context: BrowserContext, answers: Path) -> None:
    text = "a\U0001f600b\U0001f389c and some more words"
    with running(make_studio(answers)) as url:
        page = enter(context, url)
        ((_, start, end, *_),) = page.evaluate(_RANGES, [text, [[2, 5]], False])
    assert text[start:end] == "\U0001f600b\U0001f389"


def test_teach_see_the_change_and_discard(context: BrowserContext, answers: Path) -> None:
    teacher = ScriptedTeacher()
    with running(make_studio(answers, teacher)) as url:
        page = enter(context, url)
        drag(page, PLAIN, "Friday")
        page.keyboard.press("p")
        page.keyboard.press("t")
        lesson = page.get_by_role("dialog")
        expect(lesson.locator(".token.told.down").first).to_contain_text("50% → 25%")
        expect(lesson).to_contain_text("closed on Friday")
        expect(lesson).to_contain_text("closed on Monday")
        lesson.get_by_role("button", name="Discard it").click()
        expect(lesson).to_have_count(0)
        page.keyboard.press("t")
        page.get_by_role("button", name="Keep it").click()
        page.get_by_role("link", name="Teach").click()
        expect(page.get_by_text("has learned 1 lesson")).to_be_visible()
        page.get_by_role("button", name="Undo the last lesson").click()
        expect(page.get_by_text("has learned 0 lessons")).to_be_visible()
    assert teacher.calls == ["teach", "discard lesson-1", "teach", "keep lesson-3", "undo"]


def test_two_annotators_and_a_killed_server(browser: Browser, answers: Path) -> None:
    """Nothing that was confirmed is lost by kill -9, and what was not is saved when the server is back."""
    server = StudioProcess(answers)
    contexts = [browser.new_context(viewport={"width": 1300, "height": 800}) for _ in range(2)]
    try:
        mia, tom = (enter(context, server.url, name) for context, name in zip(contexts, ("Mia", "Tom"), strict=True))
        for page, words in ((mia, "Friday"), (tom, "430 bolts")):
            drag(page, PLAIN, words)
            page.keyboard.press("p")
            saved(page)
        server.kill()
        drag(mia, PLAIN, "historic")
        mia.keyboard.press("g")
        expect(mia.locator(".save-state.retrying")).to_be_visible()
        server = StudioProcess(answers, port=server.port)
        saved(mia)
        tom.reload()
        expect(tom.locator(".mark-item .quote")).to_have_text("430 bolts")
        mia.reload()
        expect(mia.locator(".mark-item .quote")).to_have_text(["Friday", "historic"])
        mia.get_by_role("link", name="Review").click()
        expect(mia.locator("tbody th")).to_have_text("Mia and Tom")
        mia.locator(".differences a").click()
        mia.get_by_role("checkbox", name="Friday").check()
        mia.get_by_role("button", name="Save the decision").click()
        expect(mia.locator(".differences .state")).to_have_text("●")
    finally:
        for context in contexts:
            context.close()
        server.stop()
    studio = make_studio(answers)
    project = studio.workspace.open(studio.workspace.sources()[0].id)
    marks = {
        one.annotator: [PLAIN[span.start : span.end] for span in one.feedback.spans]
        for one in project.store.annotations(project.keys[0])[project.keys[0]]
    }
    assert marks == {"Mia": ["Friday", "historic"], "Tom": ["430 bolts"], exports.ADJUDICATOR: ["Friday"]}
    studio.close()


def test_two_windows_of_one_person_do_not_overwrite_each_other(context: BrowserContext, answers: Path) -> None:
    studio = make_studio(answers)
    project = studio.workspace.open(studio.workspace.sources()[0].id)
    with running(studio) as url:
        first = enter(context, url)
        second = context.new_page()
        second.goto(url)
        expect(second.get_by_role("textbox", name="Answer 1", exact=True)).to_be_focused()
        for page, words in ((first, "Friday"), (second, "430")):
            drag(page, PLAIN, words)
            page.keyboard.press("p")
        expect(second.get_by_role("alert")).to_contain_text("changed in another window")
        second.get_by_role("button", name="Take that version").click()
        expect(second.locator(".mark-item .quote")).to_have_text("Friday")
        drag(second, PLAIN, "historic")
        second.keyboard.press("p")
        saved(second)
        kept = project.store.get(project.keys[0], "Mia").feedback.spans
    assert [PLAIN[span.start : span.end] for span in kept] == ["Friday", "historic"]


def test_scripts_in_texts_names_and_metrics_do_not_run(context: BrowserContext, tmp_path: Path) -> None:
    evil = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
    path = tmp_path / "<img src=x onerror=alert(1)>.jsonl"
    write_examples(path, [Example(id=evil, prompt=evil, completion=evil, reference=evil)])
    studio = make_studio(path)
    folder = tmp_path / "runs" / "<b>run"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 1, evil: 0.5}) + "\n")
    (folder / "report.html").write_text(
        "<h1 id=t>report</h1><script>fetch('/api/runs').then(() => t.textContent='x')</script>"
    )
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    log = tmp_path / "log"
    log.write_text(evil)
    studio.runs._runs[folder.name] = TrainingRun(folder, 1, ended, log)
    with running(studio) as url:
        page = enter(context, url, "<script>alert(1)</script>"[:40])
        problems: list[str] = []
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        expect(page.get_by_role("textbox", name="Answer 1", exact=True)).to_have_text(evil)
        page.keyboard.press("c")
        page.keyboard.type(evil)
        saved(page)
        page.reload()
        expect(page.get_by_label("Comment")).to_have_value(evil)
        page.get_by_role("link", name="Review").click()
        page.get_by_role("link", name="Teach").click()
        expect(page.locator(".curve figcaption")).to_contain_text("onerror")
        expect(page.locator("main img, main script")).to_have_count(0)
        with context.expect_page() as opened:
            page.get_by_role("link", name="Report").click()
        report = opened.value
        report.wait_for_timeout(300)
        assert report.text_content("h1") == "report"  # its script ran in a sandbox and got nothing
        assert "hacked" not in page.title()
        assert problems == []


def test_a_token_opens_the_studio(context: BrowserContext, answers: Path) -> None:
    with running(make_studio(answers, token="0123456789abcdef")) as url:
        page = context.new_page()
        page.goto(url)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("alert")).to_contain_text("the token is wrong")
        page.goto("about:blank")
        page.goto(f"{url}#token=0123456789abcdef")
        expect(page.get_by_label("Your name")).to_be_visible()
        assert "token" not in page.url


def test_a_phone(browser: Browser, answers: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    with running(make_studio(answers, ScriptedTeacher())) as url:
        page = enter(context, url)
        drag(page, PLAIN, "Friday")
        page.get_by_role("button", name="Poor").tap()
        expect(page.locator(".mark-item .quote")).to_have_text("Friday")
        saved(page)
        for view in ("Annotate", "Review", "Teach"):
            page.get_by_role("link", name=view).tap()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


@pytest.mark.skipif(not Path(AXE).is_file(), reason="no axe-core: `npm install axe-core`, or TEXT2GRAD_AXE=axe.min.js")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_no_serious_violation_of_accessibility(browser: Browser, answers: Path, scheme: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    context.add_init_script(path=AXE)
    found: list[Any] = []

    def check(page: Page, where: str) -> None:
        for violation in page.evaluate("async () => (await axe.run()).violations"):
            if violation["impact"] in ("serious", "critical"):
                found.append((where, violation["id"], violation["nodes"][0]["html"]))

    with running(make_studio(answers, ScriptedTeacher())) as url:
        page = context.new_page()
        page.goto(url)
        page.get_by_label("Your name").wait_for()
        check(page, "name")
        page.close()
        page = enter(context, url)
        drag(page, PLAIN, "Friday")
        check(page, "selected")
        page.keyboard.press("p")
        page.keyboard.press("e")
        check(page, "mark")
        page.keyboard.press("Escape")
        page.keyboard.press("c")
        page.keyboard.type('"430" is wrong.')
        expect(page.locator(".suggestion")).to_have_count(1)
        check(page, "suggestion")
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        page.get_by_role("button", name="Discard it").wait_for()
        check(page, "lesson")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        check(page, "keys")
        page.keyboard.press("Escape")
        page.keyboard.press("y")
        page.locator(".panes.two").wait_for()
        check(page, "two answers")
        for view in ("Review", "Teach"):
            page.get_by_role("link", name=view).click()
            page.locator(".page h2").first.wait_for()
            check(page, view)
    context.close()
    assert found == []
