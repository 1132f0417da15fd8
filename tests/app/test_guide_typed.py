"""README and guide run in the order written, without a model: their keys, and lines of cockpit and shell.

Typed are the lines of code blocks, and the keys and lines that a numbered step names outside of parentheses.
What stands behind ` needs ` at the head of a code block is not there in a test, and the page says so, too.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app import guide
from app.cli.examples import copy_example, load_examples
from app.cli.main import main
from tests.patience import PATIENCE_S
from tests.rounds import FULL
from tests.typed import KEYS, REFUSED, TypedCockpit

ROOT = Path(__file__).parents[2]
PAGES = {
    "README": ROOT / "README.md",
    **{topic: ROOT / f"app/guide/{topic}.md" for topic in guide.READING_ORDER},
}
FENCE = re.compile(r"^ *```(?:\w+)?(?: needs (.+))?$")
STEP = re.compile(r"^\d+\. ")
CODE = re.compile(r"`([^`]+)`")
ASIDE = re.compile(r"\([^)]*\)")
EXIT_CODE = re.compile(r"#.*exit code (\d+)")
FIELD, EMPTY = re.compile(r"^ ❯ (.*)$", re.MULTILINE), "a command, or a goal"
OPEN = re.compile(r"\besc (?:close|cancel|again)|─ Please confirm ─|─ Manual intervention ─")
"""What a dialog has."""
BUSY = "is running; wait for it"
"""What a refusal says that holds for a moment."""
MINUTES = "a minute"
"""What a line needs that `make endurance` has."""


@dataclass(frozen=True)
class Typed:
    """One thing that a page has its reader type."""

    where: str
    text: str
    kind: str
    """`key`, `line` (of the command bar), `shell`, or `end` of a numbered step."""
    needs: str = ""


def typed(page: str) -> Iterator[Typed]:
    """What a page has its reader type, in its order."""
    lines = PAGES[page].read_text(encoding="utf-8").splitlines()
    needs: str | None = None
    step = ""
    for number, line in enumerate([*lines, ""], 1):
        where = f"{PAGES[page].name}:{number}"
        fence = FENCE.match(line)
        if needs is None and step and (fence or STEP.match(line) or not line.strip()):
            yield from _named(step, where)
            step = ""
        if fence:
            if needs is not None:
                yield Typed(where, "", "end")
            needs = (fence[1] or "") if needs is None else None
        elif needs is not None:
            yield from _of_block(line.strip(), where, needs)
        elif STEP.match(line) or (step and line.strip()):
            step += f" {line}"


def _of_block(line: str, where: str, needs: str) -> Iterator[Typed]:
    if line.startswith(": "):
        yield Typed(where, line[2:], "line", needs)
    elif line.startswith(("pilothouse ", "make ")):
        yield Typed(where, line, "shell", needs)


def _named(step: str, where: str) -> Iterator[Typed]:
    """The keys and lines that a numbered step names."""
    for text in CODE.findall(ASIDE.sub("", step)):
        if text in KEYS or len(text) == 1:
            yield Typed(where, text, "key")
        elif text.startswith(": "):
            yield Typed(where, text[2:], "line")
    yield Typed(where, "", "end")


@pytest.mark.fast
@pytest.mark.parametrize("page", PAGES)
def test_what_a_line_needs_its_page_tells(page: str) -> None:
    text = " ".join(re.sub(r"^ *```.*$", "", PAGES[page].read_text(), flags=re.MULTILINE).split())
    for each in typed(page):
        assert each.needs.split()[-1:] == [] or each.needs.split()[-1] in text, each


def is_there(each: Typed) -> bool:
    """Whether a test has what it needs."""
    return not each.needs or (FULL and each.needs == MINUTES)


def copy_all_examples(workspace: Path) -> None:
    for name in load_examples():
        copy_example(name, workspace)


def run(words: list[str]) -> int:
    """Run a command line here where it comes back; its exit code."""
    if words[0] == "make":
        return subprocess.run(
            ["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, check=False
        ).returncode
    if words[1] in ("serve", "ps"):
        program = [sys.executable, "-m", "app.cli.main", *words[1:]]
        path = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(program, env=path, timeout=PATIENCE_S, check=False).returncode
    try:
        return main(words[1:])
    except SystemExit as ended:
        return int(ended.code or 0)


# ------------------------------------------------------------------ in a cockpit


class Reader:
    """Types what a page says into a cockpit, and sees that each has an effect and that none is refused."""

    def __init__(self, cockpit: TypedCockpit) -> None:
        self.cockpit = cockpit

    def do(self, each: Typed) -> None:
        """Type it; an end of a step closes what is open, once what runs has ended."""
        try:
            if each.kind == "key":
                shown = self.cockpit.changes(KEYS.get(each.text, each.text))
            elif each.kind == "line":
                shown = self._enter(each.text)
                while BUSY in shown:  # it says to wait
                    time.sleep(1)
                    shown = self._enter(each.text, again=True)
            else:
                self.cockpit.until(lambda text: "RUNNING" not in text, "what runs ends")
                self.cockpit.until(self._came_to_its_turn, "the choices of an intervention are open")
                shown = self._escape()
        except TimeoutError as error:
            raise AssertionError(f"{each}: {error}") from None
        assert REFUSED not in shown, f"{each}:\n{shown}"
        keyed = each.kind == "key" and each.text != ":" and not OPEN.search(shown)
        if keyed and (field := FIELD.search(shown)):
            assert EMPTY in field[1], f"{each} became text:\n{shown}"

    @staticmethod
    def _came_to_its_turn(text: str) -> bool:
        """Whether the dialog of an intervention is or was open, where it is the operator's turn."""
        return "INTERVENTION" not in text or bool(OPEN.search(text)) or "i opens this again" in text

    def _escape(self) -> str:
        """Close what is open and leave the bar; the screen."""
        for _ in range(8):
            self.cockpit.press(KEYS["esc"].encode())
            shown = self.cockpit.steady()
            if not OPEN.search(shown) and self._in_panes:
                break
        return shown

    def _enter(self, line: str, again: bool = False) -> str:
        """Type a line into the bar; one that is typed again may be answered as before."""
        for _ in range(8):  # a dialog may still be on its way
            if OPEN.search(self.cockpit.text) or not self._in_panes:
                self._escape()
            before = self._answer()
            self.cockpit.press(b":")
            self.cockpit.steady()
            if not self._in_panes:
                break
        self.cockpit.press(line.encode())
        self.cockpit.until(lambda text: line[-20:] in text, f"{line} is typed")
        typed = self._answer()
        self.cockpit.press(b"\r")
        self.cockpit.until(
            lambda text: (
                self._answers(*((("", ""), (typed[0], "")) if again else (before, typed)))
                or OPEN.search(text)
            ),
            f"{line} is answered",
        )
        return self.cockpit.steady()

    def _answers(self, before: tuple[str, str], typed: tuple[str, str]) -> bool:
        """Whether the bar says something new, or another agent is shown than when the line was typed."""
        agent, says = self._answer()
        return agent != typed[0] or (says[:1] in "✓·?✗" and (agent, says) not in (before, typed))

    @property
    def _in_panes(self) -> bool:
        """Whether letters are keys: the last line names them."""
        return "run/pause" in self.cockpit.text.split("\n")[-1]

    @property
    def agent(self) -> str:
        """The agent that is shown."""
        return self._answer()[0]

    def _answer(self) -> tuple[str, str]:
        """The agent that is shown, and what the bar says."""
        rows = self.cockpit.text.split("\n")
        return rows[0].split()[1], rows[-2].strip()


def refusals(workspace: Path) -> list[str]:
    """What the journal has that was refused."""
    with sqlite3.connect(workspace / ".pilothouse/journal.db") as journal:
        rows = journal.execute("select body from events where kind = 'command.refused'")
        return [str(body) for (body,) in rows]


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_the_lines_of_the_other_pages_are_typed_into_one_cockpit(tmp_path: Path) -> None:
    copy_all_examples(tmp_path / "workspace")
    cockpit = TypedCockpit(tmp_path / "workspace", "--mission", "first-flight")
    reader = Reader(cockpit)
    try:
        cockpit.until(lambda text: "held next" in text, "the first mission")
        for page in guide.READING_ORDER[1:]:
            lines = [each for each in typed(page) if each.kind == "line" and is_there(each)]
            if lines and reader.agent != "pilot-1":
                reader.do(Typed(page, "agent pilot-1", "line"))
            for each in lines:
                reader.do(each)
    finally:
        cockpit.end()
    assert not refusals(tmp_path / "workspace")


@pytest.mark.slow
def test_the_lines_of_a_shell_end_with_the_code_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workspace").mkdir()
    for each in (each for page in PAGES for each in typed(page)):
        if each.kind == "shell" and is_there(each):
            said = EXIT_CODE.search(each.text)
            words = shlex.split(each.text, comments=True)
            code = run(words)
            printed = capsys.readouterr()
            assert code == int(said[1] if said else 0), (
                f"{each}\n{printed.out[-2000:]}\n{printed.err[-2000:]}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README", "first-hour"])
def test_a_walk_is_typed_in_its_order(page: str, tmp_path: Path) -> None:
    cockpit = TypedCockpit(tmp_path / "workspace", "--mission", "first-flight")
    reader = Reader(cockpit)
    try:
        cockpit.until(lambda text: "held next" in text, "the first mission")
        for each in typed(page):
            if each.kind != "shell" and is_there(each):
                reader.do(each)
    finally:
        cockpit.end()
    assert not refusals(tmp_path / "workspace")
