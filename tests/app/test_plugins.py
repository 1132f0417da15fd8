"""Verbs of others: used when they are sound, named when they are not."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from app.cli.doctor import _plugins
from app.commands import plugins
from app.commands.command import Context, GrammarError
from app.commands.command_runner import run_command
from app.commands.registry import complete, help_answer, read_line
from engine.core import commands as cmd

MODULE = """
from app.commands.arguments import Word
from app.commands.command import Command
from app.verb import GrammarError, Local, Verb
from engine.core.commands import AdoptGoal

def read(rest, context):
    if rest == "fail":
        raise RuntimeError("oh\\nno")
    if rest == "odd":
        return 7
    if rest.startswith("goal "):
        return AdoptGoal(agent=context.agent, text=rest[5:])
    return Local("say", f"hello {rest or 'world'}")

greet = Verb("greet", "greet [NAME]", "say hello", read, "anything", choices=lambda c: [("anna", "one")])
other = Verb("another", "another", "is named otherwise", read, "x")
pause = Verb("pause", "pause", "is taken", read, "x")
number = 7

async def count(host, values):
    host.say("counting")
    if values["upto"] == "fail":
        raise RuntimeError("oh")
    return 0, {"upto": values["upto"]}, f"counted to {values['upto']}"

counted = Command("counted", "count", count, (Word("upto", "a number"),), examples=("counted 3",))
"""
POINTS = """[pilothouse.verbs]
greet = greeting_plugin:greet
misnamed = greeting_plugin:other
pause = greeting_plugin:pause
number = greeting_plugin:number
missing = greeting_plugin:nothing_there
broken = greeting_broken:verb
Bad-Name = greeting_plugin:greet

[pilothouse.commands]
counted = greeting_plugin:counted
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = tmp_path / "site"
    info = site / "greeting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (site / "greeting_plugin.py").write_text(MODULE)
    (site / "greeting_broken.py").write_text("raise SystemExit('no')")
    monkeypatch.syspath_prepend(str(site))
    _forget()
    yield
    _forget()
    sys.modules.pop("greeting_plugin", None)


def _forget() -> None:
    plugins._points.cache_clear()
    plugins.load_plugin.cache_clear()


def meaning_of(line: str) -> object:
    return read_line(line, Context(agent="a")).values["meaning"]


def test_a_plugin_is_loaded_when_its_verb_is_needed() -> None:
    assert read_line("goal x", Context(agent="a")).sends == cmd.AdoptGoal(agent="a", text="x")
    assert ("greet ", "a plugin") in complete("gre", Context())
    assert "greeting_plugin" not in sys.modules
    assert meaning_of("GREET you") == "hello you"
    assert meaning_of("greet goal x y") == cmd.AdoptGoal(agent="a", text="x y")
    assert complete("greet a", Context()) == [("greet anna", "one")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("greet fail", "the plugin 'greet' failed: RuntimeError: oh no"),
        ("greet odd", "neither a command nor a text"),
        ("misnamed", "its command is named 'another'"),
        ("number", "it gives a int"),
        ("missing", "cannot be imported: AttributeError"),
        ("broken", "cannot be imported: SystemExit: no"),
        ("gret", "did you mean greet"),
    ],
)
def test_a_broken_plugin_is_named_and_hurts_nothing(line: str, said: str) -> None:
    with pytest.raises(GrammarError, match=said):
        read_line(line, Context())


async def test_help_and_doctor_name_what_plugins_there_are(tmp_path: Path) -> None:
    code, answer, text = help_answer()
    assert code == 0
    assert answer["verbs"][-1]["verb"] == "greet"
    assert answer["verbs"][-1] == {
        "verb": "greet", "usage": "greet [NAME]", "help": "say hello", "aliases": [], "group": "Plugins",
    }  # fmt: skip
    assert {one["verb"] for one in answer["broken"]} == {
        *("misnamed", "pause", "number", "missing", "broken", "Bad-Name")
    }
    assert "is a command already" in text
    found = _plugins()
    assert not found["ok"]
    assert found["verbs"] == "counted, greet"
    assert await run_command(tmp_path / "ws", "greet anna") == (
        0, {"ok": True, "message": "hello anna"}, "hello anna",
    )  # fmt: skip
    assert await run_command(tmp_path / "ws", "counted 3") == (0, {"upto": "3"}, "counted to 3")
    code, _, text = await run_command(tmp_path / "ws", "counted fail")
    assert (code, text) == (2, "the plugin 'counted' failed: RuntimeError: oh")
    code, _, text = await run_command(tmp_path / "ws", "counted")
    assert (code, text) == (2, "a number is missing · usage: counted UPTO")


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("app.verb", "app.commands.verb", "Verb"),
        ("engine.domain.commands", "engine.core.commands", "AdoptGoal"),
    ],
)
def test_a_module_of_0_1_gives_the_same_values_and_says_what_replaces_it(
    old: str, new: str, name: str
) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: "):
        module = importlib.import_module(old)
    assert getattr(module, name) is getattr(importlib.import_module(new), name)
