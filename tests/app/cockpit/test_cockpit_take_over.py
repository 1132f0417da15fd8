"""The operator at the agent's shell: in the session's place, with every key, and back to the agent."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit
from textual import events

from app.cockpit.controllers.turn import ShellPane
from engine.core import events as ev
from engine.core.agents import Mode, RunState
from tests.rounds import sizes
from widgets.base.dialog import ConfirmDialog
from widgets.dialogs.turn import HandBackDialog, HandoverDialog, InterventionDialog
from widgets.panes.command_bar import CommandBar

SIZES = sizes((80, 24), (160, 45))
HAND_BACK = "ctrl+right_square_bracket"
KEYS = """import os, sys, tty
tty.setraw(0)
print("ready", end="\\r\\n", flush=True)
seen = b""
while not seen.endswith(b"Q"):
    seen += os.read(0, 100)
print(seen.hex(" "), end="\\r\\n")
"""
"""A program that shows which keys reached it, until Q."""
UNTIL_GO = "while not pathlib.Path('go').exists(): time.sleep(0.02)\n"
EVIL = r"""print("\x1b]0;OWNED\x07\x1b]52;c;T1dORUQ=\x07\x1b]9;OWNED\x07\x1b[3J\x1b[?1049h")
print("\x1b[2J\x9b2J\x1bcdone-evil")
"""


def shell_of(flight: Flight) -> ShellPane:
    pane = flight.app.controllers.layout.terminal
    assert isinstance(pane, ShellPane)
    return pane


async def in_place(flight: Flight) -> None:
    """Wait until the shell can be typed into."""
    await flight.until(lambda: flight.app.controllers.layout.terminal is not None, "the shell in its place")
    await flight.until(lambda: shell_of(flight).has_focus, "the keys in the shell")
    await flight.shows("$ ")


async def take(flight: Flight) -> None:
    await flight.press("t")
    await in_place(flight)


async def enter(flight: Flight, line: str) -> None:
    """Paste a line, which is quicker than to type it, and run it."""
    shell_of(flight).post_message(events.Paste(line))
    await flight.press("enter")


async def hand_back(flight: Flight, note: str = "") -> None:
    await flight.press(HAND_BACK)
    await flight.dialog(HandBackDialog)
    await flight.press(*note, "enter")


async def change(flight: Flight, line: str, path: str) -> None:
    """Run a line that makes a file, and wait for the file."""
    await enter(flight, line)
    await flight.until((flight.engine.root / path).exists, path)


async def handover(flight: Flight) -> HandoverDialog:
    """Wait for the hand-over."""
    await flight.dialog(HandoverDialog)
    dialog = flight.app.screen
    assert isinstance(dialog, HandoverDialog)
    return dialog


@pytest.fixture
async def taken(tmp_path: Path) -> AsyncIterator[Flight]:
    """A cockpit with a plan, whose operator holds the shell."""
    async with cockpit(tmp_path / "ws", mission="first-flight", size=(100, 30)) as flight:
        await take(flight)
        yield flight


@pytest.mark.parametrize("size", SIZES)
async def test_the_shell_is_taken_used_and_handed_back(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=size) as flight:
        await take(flight)
        await flight.shows(
            "YOU HOLD THE SHELL — ctrl+] hands it back", "$ SHELL", "❯ your shell has the keys"
        )
        assert flight.state.mode is Mode.SHELL
        await flight.until(lambda: flight.app.controllers.layout.zoomed, "the whole screen for the shell")
        await enter(flight, "echo it is $((6*7)) > answer.txt; cat answer.txt; stty size")
        place = shell_of(flight).content_size
        await flight.shows("it is 42", f"{place.height} {place.width}")

        await hand_back(flight, "all mended")
        await handover(flight)
        await flight.shows("answer.txt", "all mended")
        await flight.until(lambda: not flight.app.controllers.layout.zoomed, "the other panes")
        await flight.until(lambda: flight.session.is_on_screen or size[0] < 100, "the session")
        await flight.press("enter")
        await flight.no_dialog()
        await flight.says("the agent knows")
        await flight.until(lambda: "files.added" in flight.state.beliefs, "the beliefs")
        assert "answer.txt" in str(flight.state.beliefs["files.added"].value)
        assert (await flight.journal(ev.ShellReturned))[-1].note == "all mended"
        await flight.until(lambda: "cat answer.txt; stty size  (you)" in flight.session_text, "what was run")
        assert "you took the shell" in flight.session_text
        await flight.until(lambda: flight.app.focused is flight.plan.steps, "the keys in the plan")
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 1, "a step after it")


async def test_a_large_place_is_not_zoomed(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=(200, 70)) as flight:
        await take(flight)
        await flight.shows("YOU HOLD THE SHELL", "you hold the shell", "2 Plan", "held next")
        assert not flight.session.is_on_screen


async def test_every_key_is_the_shells(taken: Flight) -> None:
    taken.script("keys.py", KEYS)
    await enter(taken, "python3 keys.py")
    await taken.shows("ready")
    await taken.press(
        "escape", "ctrl+c", "ctrl+q", "colon", "ctrl+k", "ctrl+p", "question_mark", "space", "Q"
    )
    await taken.shows("1b 03 11 3a 0b 10 3f 20 51")
    assert taken.app.controllers.layout.zoomed
    assert len(taken.app.screen_stack) == 1
    assert taken.state.run is RunState.PAUSED


async def test_a_key_that_the_operator_chose_is_the_shells_too(taken: Flight) -> None:
    taken.app.set_keymap({"cockpit.command": "f3"})
    taken.script("keys.py", KEYS)
    await enter(taken, "python3 keys.py")
    await taken.shows("ready")
    await taken.press("f3", "Q")
    await taken.shows("1b 4f 52 51")


async def test_the_operator_may_look_elsewhere_while_the_shell_stays_open(taken: Flight) -> None:
    await enter(taken, "echo still-here")
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    await taken.press("tab")
    await taken.says("the shell stays yours: 5")
    await taken.until(lambda: taken.app.focused is taken.plan.steps, "the keys in the plan")
    await taken.press("space")
    await taken.says("you have the shell; hand it back first")
    await taken.press("t")
    await taken.until(lambda: shell_of(taken).has_focus, "the shell again")
    await taken.shows("still-here")
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    await taken.press("escape")
    await taken.no_dialog()
    await enter(taken, "echo and-$((1+1))")
    await taken.shows("and-2")


async def test_the_mouse_goes_to_other_panes_and_the_keys_with_it(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=(200, 70)) as flight:
        await take(flight)
        await flight.pilot.click("#memory", offset=(3, 3))
        await flight.until(lambda: flight.app.controllers.layout.focused_pane() == "memory")
        await flight.shows("keys go elsewhere; click here to type")
        await flight.press("s")
        await flight.says("you have the shell; hand it back first")
        await flight.press(HAND_BACK)
        await flight.dialog(HandBackDialog)


async def test_a_shell_goes_on_out_of_sight_of_another_agent(taken: Flight) -> None:
    await enter(taken, "echo before; until [ -e go ]; do sleep 0.05; done; echo after")
    await taken.shows("before")
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    await taken.press("tab")
    await taken.type("agent_create bdi_agent two")
    await taken.until(lambda: len(taken.app.context.projector.states) == 2)
    await taken.type("agent two")
    await taken.until(lambda: taken.app.controllers.layout.terminal is None, "the place of the session")
    await taken.shows("2 Plan", "5 Sandbox session", "‖ pilot-1  shell")
    (taken.engine.root / "go").touch()
    await taken.type("agent pilot-1")
    await in_place(taken)
    await taken.shows("before", "after", "YOU HOLD THE SHELL")
    await taken.until(lambda: taken.app.controllers.layout.zoomed, "the whole screen for the shell")


async def test_two_agents_have_a_shell_each(taken: Flight) -> None:
    await enter(taken, "echo this is the first")
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    await taken.press("tab")
    await taken.type("agent_create bdi_agent two")
    await taken.until(lambda: len(taken.app.context.projector.states) == 2)
    await taken.type("agent two")
    await taken.until(lambda: taken.app.controllers.layout.terminal is None)
    await taken.press("escape")
    await take(taken)
    await enter(taken, "echo this is the second")
    await taken.shows("this is the second")
    assert not taken.has(["the first"])
    await hand_back(taken)
    await taken.until(
        lambda: list(taken.app.controllers.turn._shells) == ["pilot-1"], "the end of the second"
    )


async def test_escape_leaves_the_handover_open_and_nothing_runs_before_it_is_settled(taken: Flight) -> None:
    await change(taken, "touch new.txt", "new.txt")
    await hand_back(taken)
    for key in ("t", "i", "n"):
        await handover(taken)
        await taken.press("escape")
        await taken.no_dialog()
        await taken.says("the agent waits until you say")
        await taken.shows("your changes wait (t)", "asks you")
        await taken.press("space")
        await taken.says("say first what the agent is to know")
        await taken.press(key)
    await handover(taken)
    await taken.press("minus", "enter")
    await taken.says("the agent knows 0 of")
    assert "files.added" not in taken.state.beliefs
    await taken.until(lambda: not taken.has(["asks you"]), "no question")


async def test_the_words_of_the_bar_do_it_too(flight: Flight) -> None:
    await flight.type("take_shell")
    await in_place(flight)
    await enter(flight, "mkdir shop; cd shop; touch new.txt")
    await flight.press(HAND_BACK)
    await flight.dialog(HandBackDialog)
    await flight.press("tab")
    await flight.type("return_shell by hand")
    await handover(flight)
    await flight.press("escape")
    await flight.type("settle operator.note place")
    await flight.says("the agent knows 1 of")
    assert flight.state.beliefs["operator.note"].value == "by hand"
    assert flight.state.sandbox.cwd == "shop"
    await flight.type("return_shell")
    await flight.says("there is no shell to hand back")


async def test_a_shell_that_ends_by_itself_is_handed_back(taken: Flight) -> None:
    await enter(taken, "touch new.txt")
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    shell_of(taken).terminal.write(b"exit\n")
    await handover(taken)
    assert taken.app.controllers.layout.terminal is None


async def test_what_is_stopped_leaves_no_terminal_behind(taken: Flight) -> None:
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    await taken.press("tab")
    await taken.until(lambda: taken.app.focused is taken.plan.steps)
    await taken.press("full_stop")
    await taken.until(
        lambda: taken.app.controllers.layout.terminal is None and not taken.app.controllers.turn._shells,
        "the end of the shell",
    )
    await taken.until(lambda: "cut off: " in taken.session_text, "the end in the session")


async def test_leaving_with_a_shell_open_asks_first(taken: Flight) -> None:
    await taken.press(HAND_BACK)
    await taken.dialog(HandBackDialog)
    await taken.press("tab", "ctrl+q")
    await taken.dialog(ConfirmDialog)
    await taken.shows("shell ends, with all that runs in it.")
    await taken.press("n")
    await taken.no_dialog()
    assert shell_of(taken).terminal.open


async def test_the_shell_follows_the_size_of_the_screen(taken: Flight) -> None:
    for size in ((160, 45), (80, 24), (60, 20), (20, 5), (200, 70), (100, 30)):
        await taken.pilot.resize_terminal(*size)
        await taken.until(
            lambda size=size: (
                shell_of(taken).region.width == size[0]  # type: ignore[misc]
                and taken.app.screen.region.size == size
            ),
            f"the shell at {size}",
        )
    await enter(taken, "stty size")
    await taken.shows("23 98")


async def test_hostile_output_draws_in_the_pane_only(taken: Flight) -> None:
    taken.script("evil.py", EVIL)
    await enter(taken, "python3 evil.py")
    await taken.shows("done-evil", "YOU HOLD THE SHELL", "ctrl+] Hand back", "5 Session")
    assert taken.app.title == "pilothouse"
    assert taken.app.clipboard == ""


async def test_a_flood_in_the_shell_leaves_the_other_keys_alone(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=(200, 70)) as flight:
        await take(flight)
        shell = shell_of(flight)
        await enter(flight, "yes flood")
        await flight.until(lambda: shell._emulator.screen_top > 1_000, "the flood")
        flight.app.set_focus(flight.plan.steps)
        # Not by the pilot, which waits after each key until nothing goes on.
        flight.app.post_message(events.Key("home", None))
        for key, step in [("down", "s2"), ("down", "s3"), ("up", "s2"), ("up", "s1")]:
            top = shell._emulator.screen_top
            flight.app.post_message(events.Key(key, None))
            await flight.until(lambda step=step: flight.plan.selected == step, step)  # type: ignore[misc]
            await flight.until(lambda top=top: shell._emulator.screen_top > top, "the flood goes on")  # type: ignore[misc]
        flight.app.set_focus(shell)
        flight.app.post_message(events.Key("ctrl+c", None))
        last = shell.content_size.height - 1
        await flight.until(lambda: shell.render_line(last).text.startswith("./ $"), "the prompt")
        await enter(flight, "echo the flood is $((1+1))ver")
        await flight.shows("the flood is 2ver")


async def test_a_paste_of_lines_asks_where_they_would_run_at_once(taken: Flight) -> None:
    await enter(taken, "echo rea''dy; cat > pasted.txt")
    await taken.shows("ready")
    shell_of(taken).post_message(events.Paste("one\ntwo\n"))
    await taken.dialog(ConfirmDialog)
    await taken.shows("Paste 2 lines into the shell?")
    await taken.press("y")
    await taken.no_dialog()
    await taken.press("ctrl+d")
    await taken.until(lambda: (taken.engine.root / "pasted.txt").read_text() == "one\ntwo\n", "the lines")


async def test_text_in_the_shell_is_selected_and_copied_with_the_mouse(taken: Flight) -> None:
    await enter(taken, "clear; echo; echo copy these words")
    await taken.until(lambda: shell_of(taken).render_line(1).text.startswith("copy these"), "the words")
    await taken.pilot.mouse_down(shell_of(taken), offset=(6, 2))
    await taken.pilot.hover(shell_of(taken), offset=(17, 2))
    await taken.pilot.mouse_up(shell_of(taken), offset=(17, 2))
    await taken.says("copied the selection")
    assert taken.app.clipboard.startswith("these words"[:4])


async def test_what_scrolled_away_can_be_read(taken: Flight) -> None:
    await enter(taken, "seq -f 'line %g' 200")
    await taken.shows("line 200")
    await taken.press(*["shift+pageup"] * 9)
    await taken.shows("line 1 ", "lines back; type to return")


async def test_a_hand_back_without_changes_says_so(taken: Flight) -> None:
    await hand_back(taken)
    await taken.says("nothing changed")
    await taken.until(lambda: "nothing changed" in taken.session_text, "it in the session")
    assert taken.state.handover is None
    await taken.press("s")
    await taken.until(lambda: taken.state.actions == 1, "a step after it")


async def test_a_shell_that_opens_while_a_line_is_typed_takes_no_keys(flight: Flight) -> None:
    flight.script("wait.py", "import pathlib, time\nprint('begun', flush=True)\n" + UNTIL_GO)
    await flight.goal("run 'python wait.py 1'")
    await flight.press("s")
    await flight.until(lambda: "begun" in flight.session_text)
    await flight.press("t")
    await flight.says("the shell is yours when run has ended")
    await flight.press("colon", *"goal x")
    (flight.engine.root / "go").touch()
    await flight.says("the shell is yours: 5 goes to it")
    await flight.press("y")
    await flight.until(lambda: flight.app.query_one("#command", CommandBar).input.value == "goal xy")
    await flight.press("escape", "5")
    await in_place(flight)
    await flight.says("your shell has the keys: ctrl+] hands it back")


async def test_a_shell_that_cannot_be_opened_says_why(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "openpty", none_left)
    await flight.press("t")
    await flight.until(lambda: "No terminal could be opened" in flight.session_text, "the reason")
    assert flight.state.mode is Mode.PAUSED
    assert flight.state.handover is None


async def test_what_was_not_settled_waits_for_the_next_session(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight") as flight:
        await take(flight)
        await change(flight, "touch new.txt", "new.txt")
        await hand_back(flight)
        await handover(flight)
    async with cockpit(tmp_path / "ws") as flight:
        await flight.says("the agent waits for your decision: press i")
        await flight.press("i")
        await handover(flight)
        await flight.shows("1 file added: new.txt")


async def test_output_lays_nothing_out_anew(taken: Flight, monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[int] = []
    screen = taken.app.screen
    real = screen._refresh_layout
    # What the shell taking its place asked for comes first.
    await enter(taken, "echo $((0+1))st end")
    await taken.shows("1st end")
    await asyncio.sleep(0.5)
    monkeypatch.setattr(
        screen, "_refresh_layout", lambda *said, **more: (laid_out.append(1), real(*said, **more))
    )
    await enter(taken, "for n in $(seq 300); do echo line $n; sleep 0.002; done; echo $((1+1))nd end")
    await taken.shows("2nd end")
    assert not laid_out


async def test_the_turn_is_there_again_after_the_shell(waiting: Path) -> None:
    async with cockpit(waiting) as flight:
        await flight.says("press i")
        await flight.press("i")
        await flight.dialog(InterventionDialog)
        await flight.press("t")
        await flight.no_dialog()
        await in_place(flight)
        await flight.shows("SHELL", "you hold the shell")
        await change(flight, "echo mended > mended.txt", "shop/mended.txt")
        await hand_back(flight)
        await handover(flight)
        await flight.press("enter")
        await flight.dialog(InterventionDialog)
        assert flight.state.intervention is not None
