"""What a file, a command, a goal or a recipe holds can be anything: nothing breaks, acts, or gets out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit
from rich.console import Console
from textual.command import CommandPalette

from app.commands.settings import Settings
from engine.core import commands as cmd
from tests.trusting import trust_folder
from widgets.dialogs.help import HelpDialog
from widgets.dialogs.step_editor import StepEditor
from widgets.dialogs.turn import InterventionDialog

HOSTILE = (
    "\x1b]52;c;aGVsbG8=\x1b\\\x1b]0;title\x07\x1b[2J\x9b2J\x9d52;c;eA==\x9c\x1b[?1049l\x1bc\x07\x08\x0b\x0c"
    "[@click=app.quit]click[/] [/] [/x] [bold $text {0} %s \u202egnp.exe\u202c \u2066iso\u2069 "
    "👩‍👩‍👧‍👦 日本語 e\u0301 \u200f\u2028 \x85 \ufeff end"
)
LONG = "x" * 10_000
_OURS = re.compile(r"\x1b\[[0-9;]*[mH]")
"""What the compositor itself writes: colours and cursor positions."""
_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
PRINTER = f"""
import sys
hostile = {HOSTILE!r}
sys.stdout.write(hostile + "\\n")
sys.stderr.write(hostile + "\\n")
sys.stdout.flush()
sys.stdout.buffer.write(b"\\xff\\xfe\\x80invalid\\xc3\\n" + b"y" * 10_000 + b"\\n\\rover\\rlast\\n")
"""


def assert_clean(flight: Flight) -> None:
    """Nothing but colours, cursor positions and printable text is on its way to the terminal."""
    screen = flight.app.screen
    update = screen._compositor.render_update(full=True)
    sent = update.render_segments(Console(force_terminal=True, color_system="truecolor"))
    found = _CONTROL.search(_OURS.sub("", sent))
    assert found is None, (found, sent[max(0, found.start() - 60) : found.end() + 60])


async def click_everywhere(flight: Flight) -> None:
    """Click on every third cell that shows the hostile markup; nothing of it may act."""
    for y, line in enumerate(flight.text.splitlines()):
        if "click" in line and "@" in line:
            await flight.pilot.click(offset=(line.index("@") + 4, y))
    assert flight.app.is_running
    assert len(flight.app.screen_stack) == 1


@pytest.fixture
async def hostile(tmp_path: Path) -> AsyncIterator[Flight]:
    async with cockpit(tmp_path / "ws") as flight:
        yield flight


async def test_the_output_of_a_command(hostile: Flight) -> None:
    """Behaviour 61."""
    hostile.script("printer.py", PRINTER)
    await hostile.goal("run 'python printer.py now'")
    await hostile.press("s")
    await hostile.until(lambda: hostile.state.actions == 1, "the command")
    await hostile.at_rest()
    await hostile.until(lambda: "invalid" in hostile.session_text, "its output")
    assert "y" * 1_000 in hostile.session_text
    assert "last" in hostile.session_text.splitlines()
    for key in ("1", "2", "3", "4", "5", "6"):
        await hostile.press(key, "z")
        assert_clean(hostile)
        await click_everywhere(hostile)
        await hostile.press("z")


async def test_the_content_and_the_name_of_a_file(hostile: Flight) -> None:
    root = hostile.engine.root
    (root / "evil.txt").write_bytes(HOSTILE.encode() + b"\xff\xfe\n" + LONG.encode())
    name = "\x1b[2J[@click=app.quit]n[x]\u202egnp.exe👩‍👩‍👧"
    (root / name).write_text("x")
    await hostile.type("! ls")
    await hostile.until(lambda: hostile.state.operator_actions == 1, "the listing")
    await hostile.type("! read evil.txt")
    await hostile.until(lambda: hostile.state.operator_actions == 2, "the file")
    await hostile.press("escape", "5", "z")
    await hostile.pilot.pause()
    assert_clean(hostile)
    await click_everywhere(hostile)


async def test_a_goal_and_what_planning_says_of_it(hostile: Flight) -> None:
    await hostile.type(f"goal {HOSTILE.replace(chr(27), '')}")
    await hostile.until(lambda: hostile.state.intervention is not None, "the operator's turn")
    await hostile.dialog(InterventionDialog)
    assert_clean(hostile)
    await hostile.press("escape")
    await hostile.no_dialog()
    for key in ("1", "4", "6"):
        await hostile.press(key, "z")
        assert_clean(hostile)
        await click_everywhere(hostile)
        await hostile.press("z")


async def test_goals_steps_and_beliefs_that_reach_the_engine_uncleaned(hostile: Flight) -> None:
    await hostile.goal("run 'echo one'")
    for command in (
        cmd.InsertStep(
            agent="pilot-1", before="s1", command="write", args={"path": HOSTILE, "content": LONG}
        ),
        cmd.Believe(agent="pilot-1", key=HOSTILE[:150], value={"deep": [HOSTILE, LONG]}),
        cmd.AdoptGoal(agent="pilot-1", text=f"{HOSTILE} {LONG[:6_000]}", priority=-1),
    ):
        receipt = await hostile.engine.submit(command)
        assert receipt.ok, receipt.message
    await hostile.until(
        lambda: len(hostile.goals.rows) >= 2 and len(hostile.steps) == 2, "the goal and the step"
    )
    for key in ("1", "2", "3"):
        await hostile.press(key, "z")
        assert_clean(hostile)
        await click_everywhere(hostile)
        await hostile.press("z")
    await hostile.press("2", "up", "up")  # wherever the clicks have put it
    await hostile.until(lambda: hostile.plan.selected == "s2", "the cursor on the step that comes next")
    await hostile.press("e")
    await hostile.dialog(StepEditor)
    assert_clean(hostile)


async def test_the_intervention_dialog_over_a_hostile_step(hostile: Flight) -> None:
    await hostile.goal("run 'python nowhere.py'")
    await hostile.type(f"edit this run python {HOSTILE.replace(chr(27), '')}.py")
    await hostile.pilot.pause()
    hostile.script("printer.py", PRINTER + "\nsys.exit(3)")
    await hostile.type("edit this run python printer.py")
    await hostile.says("edited")
    await hostile.press("escape", "space")
    await hostile.dialog(InterventionDialog)
    assert_clean(hostile)
    await hostile.press("h")
    assert_clean(hostile)


async def test_lines_that_fail(hostile: Flight) -> None:
    for line in (f"agent_create bdi_agent {HOSTILE}", f"believe k {HOSTILE}", f"! {HOSTILE}", HOSTILE):
        hostile.app.context.say("", "note")
        await hostile.type(line)
        await hostile.until(lambda: hostile.message and "such as: goal" not in hostile.message, "an answer")
        assert_clean(hostile)
    assert [state.agent_id for state in hostile.app.context.projector.states] == ["pilot-1"]
    # What begins with no command is a goal, for which there is no plan.
    await hostile.dialog(InterventionDialog)
    assert_clean(hostile)


async def test_notifications(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", notifications=True) as flight:
        flight.app.notify(HOSTILE, title=HOSTILE)
        await flight.shows("@click")
        assert_clean(flight)


async def test_palette_and_help_with_hostile_settings(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    (workspace / "recipes").mkdir(parents=True)
    (workspace / "recipes" / "[@click=app.quit]x[bold].toml").write_text(
        "[[recipe]]\nname = " + repr(HOSTILE[:40])
    )
    (workspace / "pilothouse.toml").write_text(
        '[cockpit.keys]\n"cockpit.[/x] \\u001b]0;t\\u0007" = "[/]"\n', encoding="utf-8"
    )
    trust_folder(workspace)
    async with cockpit(workspace, settings=Settings.load(workspace)) as flight:
        await flight.says("keys: there is no")
        assert_clean(flight)
        await flight.press("question_mark")
        await flight.dialog(HelpDialog)
        assert_clean(flight)
        await flight.press("escape", "ctrl+p")
        await flight.until(lambda: isinstance(flight.app.screen, CommandPalette))
        await flight.press("[", "/", "]")
        assert_clean(flight)


async def test_a_hostile_session_of_earlier_is_shown_again_and_is_harmless(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws") as flight:
        flight.script("printer.py", PRINTER)
        await flight.type("! run python printer.py")
        await flight.until(lambda: "invalid" in flight.session_text, "its output")
        await flight.at_rest()
    async with cockpit(tmp_path / "ws") as flight:
        await flight.until(lambda: "invalid" in flight.session_text, "the earlier output")
        assert_clean(flight)


async def test_output_that_imitates_the_cockpit_stays_in_its_pane(hostile: Flight) -> None:
    picture = "\x1b[7m JAIL NONE IMITATED \x1b[0m ╭─ Approve? IMITATED ─╮ ▸ yes   no │ FULL · net off"
    moves = ("\x1b[1;1H", "\x1b[99A", "\x1b[s\x1b[H", "\x1b[?1049h", "\x1b[;100H", "\r\x1b[2A", "\x1bM" * 50)
    lines = [f"{move}{picture}{row}" for row in range(40) for move in moves]
    hostile.script("printer.py", f"print({chr(10).join(lines)!r})\nprint('the last line')")
    await hostile.type("! run python printer.py")
    await hostile.until(lambda: hostile.state.operator_actions == 1, "the command")
    await hostile.shows("the last line")
    rows = hostile.text.splitlines()
    found = [(m.start(), y) for y, row in enumerate(rows) for m in re.finditer("IMITATED", row)]
    region = hostile.session.region
    assert found
    assert all(region.contains(x, y) and region.contains(x + 7, y) for x, y in found)
    assert_clean(hostile)
    assert len(hostile.app.screen_stack) == 1
