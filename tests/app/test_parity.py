"""What a key does a line does too, and each line works without a screen: as JSON, dry, and once more."""

from __future__ import annotations

import json
from pathlib import Path

from app.cockpit.keymap import KEYS, LINES
from app.commands.command_runner import run_command_in
from app.commands.headless import open_engine
from app.commands.registry import all_commands, find_command
from app.commands.settings import Settings

LINE_OF_KEY = {
    "tour_next": "tour next",
    **{action: line.format(step="s1") for action, line in LINES.items()},
    "toggle_run": "run", "stop_panel": "stop freeze", "breakpoint": "break s1", "breakpoints": "breaks",
    "edit": "edit s1", "insert": "insert mkdir src", "intervene": "intervene", "take_shell": "take_shell",
    "return_shell": "return_shell", "approve": "approve", "deny": "deny", "inbox": "inbox",
    "budgets": "budget", "world": "world", "memories": "memory pump", "meta": "meta", "context": "context",
    "why": "why s1", "earlier": "past -1", "later": "past", "first": "past 1", "now": "past",
    "rewind": "rewind -1", "fork": "fork 1", "undo": "undo", "search": "search pump",
    "campaigns": "campaign", "backlog": "coord_backlog", "mastermind_jobs": "mastermind_jobs",
    "fleet": "fleet", "handoffs": "handoffs", "help": "help", "leave": "quit", "accept_plan": "accept g1",
}  # fmt: skip
"""What does the same as a key, by the key's action."""
ONLY_ON_SCREEN = {
    **{
        f"pane('{pane}')": "goes to a pane"
        for pane in ("goals", "plan", "memory", "errors", "session", "mind")
    },
    "close_receipt": "puts away what is shown",
    "next_need": "goes to another agent",
    "zoom": "makes a pane larger",
    "command": "goes to the command bar",
    "manual": "shows the guide: pilothouse help",
    "interrupt": "copies, pauses or leaves",
    "suspend_process": "gives the terminal back to the shell for a while",
}
FLIGHT = (
    # line, and whether it changes something when it comes once, and when it comes again
    ("goal write 'x' to a.txt, write 'y' to b.txt, write 'z' to c.txt", True, True),
    ("pause", False, False),
    ("break s2", True, False),
    ("break tool write", True, False),
    ("break off b1", True, False),
    ("break on b1", True, False),
    ("unbreak s2", True, False),
    ("unbreak b1", True, False),
    ("under g2 g1", True, False),
    ("priority g1 7", True, True),
    ("believe sky blue", True, True),
    ("forget sky", True, False),
    ("skip s1", True, False),
    ("delete s2", True, False),
    ("insert mkdir src", True, True),
    ("allow always run command='git *'", True, False),
    ("revoke r1", True, False),
    ("note hello", True, True),
    ("veto reflect", True, False),
    ("intervene", True, False),
    ("handback", True, False),
    ("stop freeze", True, False),
    ("thaw", True, False),
    ("stop", True, False),
    ("abort g1", True, False),
    ("agent_create bdi_agent clerk", True, False),
    ("agent_delete clerk", True, False),
    ("coord_suggest make tests faster", True, True),
    ("coord_reject i1", True, False),
)
"""Lines in their order; those that change something again add or set it anew each time."""
SHOWN = (
    "status", "inbox", "breaks", "budget", "rules", "drift", "notes", "recap", "fleet",
    "handoffs", "agent_list", "policy", "approvals", "why s1", "search x", "coord_backlog",
    "mastermind_status", "mastermind_jobs", "campaign", "help", "trust", "control", "ideas",
)  # fmt: skip
"""Lines that show something, of which each has an answer without a screen."""


def test_each_key_has_a_line_or_belongs_to_the_screen() -> None:
    assert {key.action for key in KEYS} == LINE_OF_KEY.keys() | ONLY_ON_SCREEN.keys()
    for line in LINE_OF_KEY.values():
        assert find_command(line.split()[0]), line


async def test_each_line_is_shown_dry_says_whether_it_changed_something_and_may_come_again(
    tmp_path: Path,
) -> None:
    async with open_engine(tmp_path, Settings.load(tmp_path).engine_config()) as engine:
        await run_command_in(engine, "agent_create bdi_agent pilot-1", quiet=True)
        for line, *changes in FLIGHT:
            head = await engine.head()
            code, preview, _ = await run_command_in(engine, line, agent="pilot-1", dry=True, quiet=True)
            assert (code, await engine.head(), "does" in preview) == (0, head, True), line
            for changed in changes:
                code, answer, text = await run_command_in(engine, line, agent="pilot-1", quiet=True)
                assert answer.get("changed", False) is changed, (line, code, text)
                assert json.dumps(answer)
                assert text
        version = (await engine.view("pilot-1")).version
        for line in SHOWN:
            code, answer, text = await run_command_in(engine, line, agent="pilot-1", quiet=True)
            assert (code in (0, 1), answer.get("changed")) == (True, False), (line, code, text)
            assert json.dumps(answer)
        assert (await engine.view("pilot-1")).version == version


async def test_each_command_that_changes_something_has_a_preview(tmp_path: Path) -> None:
    async with open_engine(tmp_path, Settings.load(tmp_path).engine_config()) as engine:
        await run_command_in(engine, "agent_create bdi_agent pilot-1", quiet=True)
        for command in all_commands():
            for line in command.examples:
                await run_command_in(
                    engine, line, agent="pilot-1", dry=True, quiet=True
                )  # opens what it needs
                head = await engine.head()
                code, preview, text = await run_command_in(
                    engine, line, agent="pilot-1", dry=True, quiet=True
                )
                assert await engine.head() == head, line
                assert (code in (0, 2, 3), bool(text), bool(json.dumps(preview))) == (True, True, True), line
