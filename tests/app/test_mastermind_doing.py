"""`pilothouse do` for the system itself: previews, jobs with their exit codes, agents."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.cockpit.input_history import InputHistory
from app.commands import command_runner as faults
from app.commands.command_runner import run_command, run_command_in
from app.commands.improve_runner import run_improve_command
from engine.api.engine import Engine
from engine.core.campaigns import StartJob
from engine.core.improvement import JobStatus
from engine.improve.ports import JobRefused, JobRequest, JobResult, Progress
from tests.engine.improve.running.words import lay, plug
from tests.patience import PATIENCE_S


@pytest.fixture
async def engine(tmp_path: Path):
    lay(tmp_path / "ws")
    opened = await Engine.open(tmp_path / "ws")
    plug(await opened.mastermind())
    yield opened
    await opened.close()


async def test_a_campaign_ends_with_the_operator_and_is_applied_and_rolled_back(engine: Engine) -> None:
    code, answer, text = await run_command_in(engine, "coord_improve --seed 7 texts")
    assert (code, answer["status"], answer["campaign"]) == (3, "needs you", "k1")
    assert text.startswith("? j1 needs you")
    before = (engine.root / "texts/one.txt").read_text()
    code, answer, text = await run_command_in(engine, "coord_apply")
    assert (code, answer["status"]) == (0, "done")
    assert text.startswith("✓ j2 done")
    assert (engine.root / "texts/one.txt").read_text() == "keep this line"
    code, answer, text = await run_command_in(engine, "rollback")
    assert code == 0
    assert (engine.root / "texts/one.txt").read_text() == before
    code, answer, text = await run_command_in(engine, "campaign 1")
    assert answer["campaign"]["status"] == "rolled back"
    assert text.startswith("↶ k1 on texts")
    json.dumps(answer)


async def test_what_is_refused_or_fails_bears_no_mark_of_success(engine: Engine) -> None:
    """Behaviours 4 and 14."""

    async def broken(asked: JobRequest, progress: Progress) -> JobResult:
        raise RuntimeError("boom")

    async def refuses(asked: JobRequest, progress: Progress) -> JobResult:
        raise JobRefused("not so")

    mastermind = await engine.mastermind()
    mastermind.register("evolve", broken)
    mastermind.register("coord_analyze", refuses)
    code, answer, text = await run_command_in(engine, "evolve it")
    assert (code, answer["ok"], answer["status"]) == (1, False, "failed")
    assert answer["error"] in text
    assert answer["error"] in (engine.workspace / ".pilothouse/mastermind.log").read_text()
    assert "✓" not in text
    code, answer, text = await run_command_in(engine, "coord_analyze why?")
    assert (code, answer["status"], text) == (1, "refused", "✗ j2 refused: not so")


async def test_a_preview_shows_what_is_understood_and_changes_nothing(engine: Engine) -> None:
    """Behaviour 33, for a directive."""
    since = await engine.head()
    for line in ("coord_improve texts ?", "make the texts better"):
        code, answer, text = await run_command_in(engine, line.removesuffix(" ?"), dry=line.endswith("?"))
        assert code == (0 if line.endswith("?") else 3)
        facts = dict(answer["facts"])
        assert facts["target"] == "texts"
        assert "texts/one.txt" in facts["files"]
        assert "no model" in facts["budget"]
        assert facts["read as"] in text
    assert answer["line"] == "evolve make the texts better"
    code, answer, _ = await run_command_in(engine, "goal write hello to a.txt", dry=True)
    assert dict(answer["facts"])["undo"] == "yes: undo"
    code, answer, text = await run_command_in(engine, "coord_rollback k9", dry=True)
    assert (code, answer["ok"]) == (2, False)
    assert text == "there is no campaign 'k9'; applied: none"
    assert await engine.head() == since


async def test_two_close_readings_are_asked_about(engine: Engine) -> None:
    """Behaviour 36: nothing is done before it is said which one is meant."""
    from tests.engine.improve.running.words import WordAuditor, component

    mastermind = await engine.mastermind()
    plug(mastermind, WordAuditor((component("first_texts"), component("second_texts"))))
    code, answer, text = await run_command_in(engine, "improve the first texts or second texts", dry=True)
    assert (code, {one["id"] for one in answer["choices"]}) == (3, {"first_texts", "second_texts"})
    code, answer, text = await run_command_in(engine, "improve the first texts or second texts")
    assert code == 3
    assert "coord_improve --component ID" in text
    assert not mastermind.state.campaigns
    code, answer, _ = await run_command_in(
        engine, "improve --component first_texts the first texts or second texts"
    )
    assert answer["component"] == "first_texts"


async def test_a_unique_beginning_of_an_id_is_enough_and_an_ambiguous_one_changes_nothing(
    engine: Engine,
) -> None:
    """Behaviour 11."""
    for text in ("say it shorter", "use other words", "explain why"):
        code, *_ = await run_command_in(engine, f"coord_suggest mastermind.toml {text}")
        assert code == 0
    mastermind = await engine.mastermind()
    uids = [item.uid for item in mastermind.state.items.values()]
    short = next(uid[:count] for uid in uids for count in range(1, 17) if sum(
        other.startswith(uid[:count]) for other in uids) == 1)  # fmt: skip
    code, answer, _ = await run_command_in(engine, f"coord_approve {short}")
    assert code == 0
    assert mastermind.state.items[answer["item"]].status == "pending"
    code, _, text = await run_command_in(engine, "coord_approve i")
    assert code == 1
    assert "fits 3 items" in text
    assert text.count("(") == 3
    assert [item.status for item in mastermind.state.items.values()].count("pending approval") == 2


async def test_whoever_waits_for_a_job_and_goes_takes_it_along(engine: Engine) -> None:
    mastermind = await engine.mastermind()
    began = asyncio.Event()

    async def waits(asked: JobRequest, progress: Progress) -> JobResult:
        began.set()
        await asyncio.Event().wait()
        return JobResult(JobStatus.DONE, "never")

    mastermind.register("evolve", waits)
    work = asyncio.create_task(
        run_improve_command(engine, StartJob(verb="evolve", argument="x"), operator="cli")
    )
    await began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert mastermind.state.jobs["j1"].status is JobStatus.CANCELLED


def test_ctrl_c_cancels_the_job_of_a_line(tmp_path: Path) -> None:
    workspace, begun = tmp_path / "ws", tmp_path / "begun"
    script = f"""
import asyncio, pathlib, sys
from app.cli.main import main
from engine.improve import mastermind as room
async def waits(self, asked, progress):
    pathlib.Path({str(begun)!r}).write_text("x")
    await asyncio.Event().wait()
room.Coordinator.analyze = waits
sys.exit(main(["--workspace", {str(workspace)!r}, "do", "coord_analyze what?"]))
"""
    running = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    while not begun.exists():
        assert running.poll() is None, running.stderr.read() if running.stderr else ""
        os.sched_yield()
    running.send_signal(signal.SIGINT)
    assert running.wait(PATIENCE_S) == 130
    _, answer, _ = asyncio.run(run_command(workspace, "mastermind_jobs"))
    assert [job["status"] for job in answer["jobs"]] == ["cancelled"]


@pytest.mark.parametrize("quote", ["", "'"])
async def test_json_in_single_quotes_is_the_same_configuration(engine: Engine, quote: str) -> None:
    """Behaviour 7."""
    line = f'agent_create bdi_agent two {quote}{{"description": "d", "style": "plan"}}{quote}'
    code, answer, _ = await run_command_in(engine, line)
    assert (code, answer["agent"]) == (0, "two")
    state = await engine.view("two")
    assert (state.description, state.config.meta.get("style", "plan")) == ("d", "plan")


async def test_a_fault_of_the_program_is_told_under_an_id(tmp_path: Path) -> None:
    """Behaviour 4: the log has the traceback, for the operator alone."""
    await run_command(tmp_path, "mastermind_status")
    with pytest.raises(RuntimeError) as raised:
        raise RuntimeError("boom\x1b[2J")
    said = faults.log_fault(tmp_path, raised.value)
    ident = re.search(r"error (e[0-9a-f]{6})", said)
    assert ident
    assert "\x1b" not in said
    log = tmp_path / ".pilothouse" / faults.FAULT_LOG
    assert f"--- {ident[1]}\nTraceback" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_the_history_is_the_operators_alone_and_keeps_no_secrets(tmp_path: Path) -> None:
    history = InputHistory(tmp_path)
    kept = "note two  blanks"
    for line in (kept, "coord_analyze sk-ant-REDACTED", "believe api_key=123", "! run PASSWORD=x make"):
        history.add(line)
    file = tmp_path / ".pilothouse/history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert InputHistory(tmp_path).lines == [kept]
    watching = InputHistory(tmp_path, keeps=False)
    watching.add("approve always")
    assert watching.lines == ["approve always"]
    assert InputHistory(tmp_path).lines == [kept]
