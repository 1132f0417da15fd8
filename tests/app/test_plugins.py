"""Commands of others: used when they are sound, named when they are not."""

from __future__ import annotations

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
from app.commands.arguments import Rest, Word
from app.commands.command import Command, Submit
from engine.core.commands import AdoptGoal

async def count(host, values):
    host.say("counting")
    if values["upto"] == "fail":
        raise RuntimeError("oh\\nno")
    return 0, {"upto": values["upto"]}, f"counted to {values['upto']}"

def adopt(context, values):
    return AdoptGoal(agent=context.agent, text=values["text"])

def of(name, help):
    return Command(name, help, count, (Word("upto", "a number"),), examples=(f"{name} 3",))

counted = of("counted", "count")
other, pause, silent = of("another", "count"), of("pause", "is taken"), of("silent", " ")
greet = Command("greet", "say hello", Submit(adopt), (Rest("text", "to whom"),))
number = 7
"""
POINTS = """[pilothouse.commands]
counted = greeting_plugin:counted
greet = greeting_plugin:greet
misnamed = greeting_plugin:other
pause = greeting_plugin:pause
number = greeting_plugin:number
silent = greeting_plugin:silent
missing = greeting_plugin:nothing_there
broken = greeting_broken:verb
Bad-Name = greeting_plugin:greet
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


def test_a_plugin_is_loaded_when_its_command_is_needed() -> None:
    assert read_line("goal x", Context(agent="a")).sends == cmd.AdoptGoal(agent="a", text="x")
    assert ("greet ", "a plugin") in complete("gre", Context())
    assert "greeting_plugin" not in sys.modules
    assert read_line("GREET the world", Context(agent="a")).sends == cmd.AdoptGoal(
        agent="a", text="the world"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("silent 1", "its help a text"),
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
        "verb": "greet", "usage": "greet TEXT", "help": "say hello", "aliases": [], "group": "Plugins",
    }  # fmt: skip
    assert {one["verb"] for one in answer["broken"]} == {
        *("misnamed", "pause", "number", "silent", "missing", "broken", "Bad-Name")
    }
    assert "is a command already" in text
    found = _plugins()
    assert not found["ok"]
    assert found["verbs"] == "counted, greet"
    assert await run_command(tmp_path / "ws", "counted 3") == (
        0,
        {"changed": True, "upto": "3"},
        "counted to 3",
    )
    code, _, text = await run_command(tmp_path / "ws", "counted fail")
    assert (code, text) == (2, "the plugin 'counted' failed: RuntimeError: oh no")
    code, _, text = await run_command(tmp_path / "ws", "counted")
    assert (code, text) == (2, "a number is missing · usage: counted UPTO")
