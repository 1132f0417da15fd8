"""Keys: each has an id, is in the palette and the help, and can be rebound."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest
from flight import Flight, cockpit
from textual.binding import Binding
from textual.command import CommandPalette

from app.cockpit import keymap
from app.cockpit.screens.guide import GuideScreen
from app.commands.settings import Settings
from app.guide import page, topics
from tests.trusting import write_trusted
from widgets.dialogs.help import HelpDialog


def test_ids_are_unique_and_every_key_says_what_it_does() -> None:
    ids = [binding.id for binding in keymap.BINDINGS]
    assert len(set(ids)) == len(ids)
    assert all(key.does and key.name for key in keymap.KEYS)


def test_ids_are_words_that_can_be_typed_in_a_file() -> None:
    assert {key.id for key in keymap.KEYS} >= {
        "cockpit.step",
        "cockpit.toggle-run",
        "cockpit.pane.goals",
        "cockpit.move-up",
        "cockpit.move-down",
    }


def test_no_key_is_one_that_terminals_cannot_tell_from_another() -> None:
    bindings = [*keymap.BINDINGS, *(each for group in keymap.PANE_BINDINGS.values() for each in group)]
    pressed = {key.strip() for each in bindings if isinstance(each, Binding) for key in each.key.split(",")}
    assert {"space", "y", "up"} <= pressed
    assert not pressed & keymap.FORBIDDEN


def test_a_key_that_another_action_has_is_refused_unless_that_one_moves() -> None:
    good, problems = keymap.checked({"cockpit.stop": "s"})
    assert not good
    assert "cockpit.step is on it" in problems[0]
    good, problems = keymap.checked({"cockpit.stop": "s", "cockpit.step": ".", "pane.copy-row": "f9"})
    assert good == {"cockpit.stop": "s", "cockpit.step": "full_stop", "pane.copy-row": "f9"}
    assert not problems


@pytest.mark.parametrize("key", ["", " , ", "notakey", "ctrl+nokey", "ctrl+ctrl"])
def test_what_is_no_key_is_refused_by_name(key: str) -> None:
    assert keymap.checked({"cockpit.until": key}) == ({}, ANY)


@pytest.mark.parametrize(
    "key", ["é", "f10", "ctrl+k", "alt+1", "shift+tab", "question_mark", "+", "ctrl+plus"]
)
def test_every_name_that_textual_has_is_a_key(key: str) -> None:
    assert keymap.checked({"cockpit.until": key, "cockpit.command": "f9", "cockpit.help": "f12"})[1] == []


async def test_every_key_is_in_the_palette_and_its_action_exists(flight: Flight) -> None:
    titles = {command.title for command in flight.app.get_system_commands(flight.app.screen)}
    assert titles >= {f"{key.name} ({keymap.shown_keys(key.keys)})" for key in keymap.KEYS}
    for key in keymap.KEYS:
        name = key.action.split("(")[0]
        action = flight.app.controllers.action(name) or getattr(flight.app, f"action_{name}", None)
        assert action is not None, key.action


async def test_the_palette_runs_what_it_lists(flight: Flight) -> None:
    await flight.press("ctrl+p")
    await flight.until(lambda: isinstance(flight.app.screen, CommandPalette))
    await flight.press(*"zoom")
    await flight.shows("Give the focused pane the whole screen")
    await flight.press("enter")
    await flight.until(lambda: flight.app.controllers.layout.zoomed, "the zoom")


async def test_question_mark_shows_all_keys_and_the_words_of_the_bar(flight: Flight) -> None:
    await flight.press("question_mark")
    await flight.dialog(HelpDialog)
    shown = {does for group in flight.app.screen.groups.values() for _, does in group}
    assert shown >= {key.does for key in keymap.KEYS}
    assert any("Copy the row" in does for does in shown)
    assert "Show or hide the step's detail" in shown
    assert "| `v` |" in page("keys")
    await flight.press("slash", *"breakpoint")
    await flight.shows("hold the agent before", "unbreak")
    await flight.press("escape")
    await flight.no_dialog()


async def test_a_key_is_rebound_from_the_workspace_file(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    write_trusted(workspace / "pilothouse.toml", '[cockpit.keys]\n"cockpit.step" = "f10"\n')
    async with cockpit(workspace, mission="first-flight", settings=Settings.load(workspace)) as flight:
        await flight.press("s")
        await flight.press("f10")
        await flight.until(lambda: flight.state.actions == 1, "one action")
        await flight.at_rest()
        assert flight.state.actions == 1


async def test_the_help_and_the_palette_show_the_key_as_it_was_rebound(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", keys={"cockpit.step": "f10"})
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        titles = {command.title for command in flight.app.get_system_commands(flight.app.screen)}
        assert "step (f10)" in titles
        await flight.press("question_mark")
        await flight.dialog(HelpDialog)
        rows = [row for group in flight.app.screen.groups.values() for row in group]
        assert ("f10", "Run exactly one action") in rows


async def test_a_binding_id_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", keys={"cockpit.stepp": "f10", "cockpit.stop": "ctrl+h"})
    async with cockpit(tmp_path / "ws", settings=settings) as flight:
        await flight.says("'cockpit.stepp'; did you mean cockpit.step?", "and 1 more")
        assert "ctrl+h" in str(flight.app.context.problems)
        await flight.press("full_stop")
        await flight.says("stopped")


async def test_f1_opens_the_guide_at_its_first_page(flight: Flight) -> None:
    await flight.press("f1")
    await flight.until(lambda: isinstance(flight.app.screen, GuideScreen), "the guide")
    title = page(next(iter(topics()))).partition("\n")[0].removeprefix("# ")
    await flight.shows(title)
    await flight.press("escape")
    await flight.until(lambda: len(flight.app.screen_stack) == 1, "the cockpit")
