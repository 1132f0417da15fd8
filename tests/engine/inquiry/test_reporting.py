"""A session as a report: what is in it, and that nothing recorded can act in it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from app.cli.main import main
from app.cli.session_report import Rows, as_markdown
from app.cli.sessions import query_sessions
from app.commands.headless import open_engine
from app.commands.missions import wait_until
from engine.core import commands as cmd

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) ![i](http://x.y/z) "
    "| `code` **bold** &lt; \x1b[2J \u202egnp # head <!-- http://evil.example www.evil.example "
    "\n\n---\n- [ ] x"
)


async def _session(workspace: Path) -> str:
    """A session with a goal that is reached, a refused command and an action of the operator's."""
    async with open_engine(workspace) as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="make a directory 'made'"))
        await wait_until(engine, "pilot", lambda state: state.step is not None)
        await engine.submit(cmd.Run(agent="pilot"))
        await wait_until(engine, "pilot", lambda state: not state.open_goals)
        call = {"path": "note.txt", "content": HOSTILE}
        await engine.submit(cmd.CallTool(agent="pilot", command="write", args=call))
        await wait_until(engine, "pilot", lambda state: not state.requests and not state.busy)
        missing = {"path": "absent.txt"}
        await engine.submit(cmd.CallTool(agent="pilot", command="read", args=missing))
        await wait_until(engine, "pilot", lambda state: not state.requests and not state.busy)
        refused = await engine.submit(cmd.DropGoal(agent="pilot", goal="g99"))
        assert not refused.ok
        return engine.session


async def test_a_session_is_written_with_goals_plans_actions_errors_and_what_the_operator_did(
    tmp_path: Path,
) -> None:
    session = await _session(tmp_path / "ws")
    target = tmp_path / "report.md"
    code, answer, _text = await query_sessions(tmp_path / "ws", "report", session, target)
    text = target.read_text(encoding="utf-8")
    assert (code, answer["bytes"]) == (0, len(text.encode()))
    assert answer["rows"]["Goals"] == 1
    (goal,) = answer["facts"]["goals"]
    assert (goal["goal"], goal["status"]) == ("g1", "achieved")
    assert (answer["facts"]["actions"], answer["facts"]["failed_actions"]) == (3, 1)
    assert answer["facts"]["files"] == [("pilot", "note.txt")]
    plain = text.replace("\\", "")
    begun = re.findall(r"\| · (a\d) (mkdir made|write note.txt|read absent.txt)", plain)
    assert [action for action, _ in begun] == ["a1", "a2", "a3"]
    assert "plan p1 for g1: 1 step" in plain
    assert "a3 ERROR (not_found)" in plain
    for words in ("achieved", "note.txt", "adopt_goal", "refused", "mkdir", "g99"):
        assert words in plain, words


def test_markdown_is_inert_whatever_was_recorded() -> None:
    rows: Rows = [(HOSTILE, HOSTILE), ("two\nlines", "x")]
    tables: dict[str, tuple[tuple[str, ...], Rows]] = {
        "Goals": (("call", "by"), rows),
        "Empty": (("what",), []),
    }
    text = as_markdown(HOSTILE, [("agents", HOSTILE)], tables)
    rows_ = [line for line in text.splitlines() if "alert" in line]
    assert len(rows_) == 3
    for line in rows_:
        inner = line.removeprefix("# ").removeprefix("- agents: ").strip("| ")
        bare = re.sub(r"\\[!-/:-@\[-`{-~]|&(amp|lt|gt);", "", inner.replace(" | ", ""))
        assert not re.search(r"[!-/:-@\[-`{-~]", bare), bare
    assert "\x1b" not in text
    assert all(
        len(re.findall(r"(?<!\\)\|", line)) == 3 for line in text.splitlines() if line.startswith("| ")
    )


async def test_an_agent_is_reported_over_sessions_and_goals_of_earlier_ones_have_their_words(
    tmp_path: Path,
) -> None:
    async with open_engine(tmp_path / "ws") as engine:
        await engine.submit(cmd.CreateAgent(agent="pilot"))
        await engine.submit(cmd.AdoptGoal(agent="pilot", text="make a directory 'made'"))
        await wait_until(engine, "pilot", lambda state: state.step is not None)
    async with open_engine(tmp_path / "ws") as engine:
        await engine.submit(cmd.DropGoal(agent="pilot", goal="g1"))
    target = tmp_path / "second.md"
    code, _answer, _text = await query_sessions(tmp_path / "ws", "report", "", target)
    assert code == 0
    assert "make a directory" in target.read_text(encoding="utf-8")
    code, _answer, _text = await query_sessions(tmp_path / "ws", "report", "pilot", tmp_path / "pilot.md")
    assert code == 0
    assert "- agents: pilot\n" in (tmp_path / "pilot.md").read_text(encoding="utf-8")


async def test_a_report_overwrites_nothing_and_says_what_is_wrong(tmp_path: Path) -> None:
    await _session(tmp_path / "ws")
    target = tmp_path / "report.md"
    target.write_text("mine")
    assert (await query_sessions(tmp_path / "ws", "report", "", target))[2].endswith("choose another name")
    assert target.read_text() == "mine"
    wrong = await query_sessions(tmp_path / "ws", "report", "", tmp_path / "report.pdf")
    assert (wrong[0], ".md" in wrong[2]) == (2, True)
    unknown = await query_sessions(tmp_path / "ws", "report", "nobody", tmp_path / "x.md")
    assert (unknown[0], "there is no session or agent" in unknown[2]) == (2, True)
    nowhere = await query_sessions(tmp_path / "ws", "report", "", tmp_path / "no" / "x.md")
    assert (nowhere[0], "cannot be written" in nowhere[2]) == (2, True)


def test_the_command_line_writes_a_report(tmp_path: Path) -> None:
    asyncio.run(_session(tmp_path / "ws"))
    target = tmp_path / "report.md"
    assert main(["sessions", "report", "", str(target), "--workspace", str(tmp_path / "ws")]) == 0
    assert target.read_text(encoding="utf-8").startswith("# ")
