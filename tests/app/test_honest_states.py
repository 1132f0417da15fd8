"""What is said is so: what was skipped or forced, what needs a model, what a missing network causes."""

from __future__ import annotations

from pathlib import Path

from app.commands.command_runner import run_command, run_command_in
from app.projection import pane_views as views
from app.projection.event_lines import line_of
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus, ending_of
from engine.core.reasons import Reason, free_text
from engine.crew.event_stream import EventStream as CrewStream
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.sandbox.process import Ended, ProcessResult
from engine.tools.command_line import NETWORK_OFF, run_result
from tests import forking
from widgets.base.text_layout import plain

GOAL = "create a directory called notes and write 'hello' to notes/a.txt"


async def achieved(workspace: Path, *lines: str) -> tuple[Engine, str]:
    """An agent that has run a goal after these lines; its goal's row."""
    engine = await Engine.open(workspace)
    await engine.submit(cmd.CreateAgent(agent="p1"))
    for line in (f"goal {GOAL}", *lines, "run"):
        code, _, text = await run_command_in(engine, line, quiet=True)
        assert code == 0, text
    shown = views.goal_stack([await engine.view("p1")], "p1")
    return engine, plain(shown.rows[0].pieces) + "|" + plain(shown.rows[0].tail)


async def test_a_goal_with_a_skipped_clause_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    engine, row = await achieved(tmp_path, "skip s1 not needed")
    goal = (await engine.view("p1")).goals["g1"]
    assert goal.status is GoalStatus.ACHIEVED
    assert goal.ending == ("partly", "achieved, 1 clause skipped")
    assert row == f"◐ g1 achieved, 1 clause skipped: {GOAL}|1/2"
    (ended,) = await engine.store.last(1, "p1", kind=ev.GoalEnded.kind)
    line = line_of(ended)
    assert line is not None
    assert (line.glyph, line.text) == ("◐", "goal g1 achieved, 1 clause skipped")
    await engine.close()
    done = forking.run(forking.CLI, "sessions", "replay", "p1", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


async def test_a_goal_with_a_result_given_by_hand_says_so(tmp_path: Path) -> None:
    engine, row = await achieved(tmp_path, "result s1 I made it myself")
    assert row == f"◐ g1 achieved, 1 step forced: {GOAL}|2/2"
    plan = views.plan(await engine.view("p1"))
    assert [step.status for step in plan.steps] == ["forced", "completed"]
    await engine.close()


async def test_a_goal_with_nothing_left_out_is_achieved(tmp_path: Path) -> None:
    engine, row = await achieved(tmp_path)
    assert row.startswith("✓ ")
    assert row.endswith("|2/2 achieved")
    await engine.close()


def test_the_goal_of_a_run_ends_as_its_handoff_does() -> None:
    def ended(words: str) -> tuple[str, str]:
        return ending_of(GoalStatus.ACHIEVED, free_text(words))

    assert ended("its handoff is completed") == ("achieved", "achieved")
    assert ended("its handoff is failed") == ("failed", "its handoff is failed")
    assert ended("its handoff is cancelled")[0] == "dropped"
    assert ending_of(GoalStatus.FAILED, Reason("goal.aborted")) == ("failed", "failed")


async def test_what_needs_a_model_is_refused_before_it_is_accepted(tmp_path: Path) -> None:
    async with _opened(tmp_path) as engine:
        for line in (
            "debate should we use tabs",
            "delegate pws-validation look at it",
            "parallel pws-validation,minto-pyramid look at it",
            "transfer larry",
        ):
            code, _, text = await run_command_in(engine, line, quiet=True)
            assert code == 1
            assert all(way in text for way in ("ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "pilothouse demo"))
        code, _, text = await run_command_in(engine, "evolve --usd 1 anything", quiet=True)
        assert (code, "nothing can be spent on models" in text) == (1, True)
        crew = await engine.crew()
        assert isinstance(crew.stream, CrewStream)
        assert not crew.state.handoffs


def _opened(workspace: Path):  # type: ignore[no-untyped-def]
    from app.commands.headless import open_engine

    return open_engine(workspace)


def test_a_failure_without_the_network_names_it_and_what_allows_it() -> None:
    def message(text: str, network: Network) -> str:
        failed = ProcessResult(Ended.EXIT, 1, "", text, Tier.FULL)
        return run_result(["sh"], failed, 60, SandboxPolicy().with_network(network)).message

    for text in (
        "ERROR: No matching distribution found for httpx",
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution\nmore",
        "npm error code EAI_AGAIN",
    ):
        assert message(text, Network.OFF).startswith(NETWORK_OFF)
        assert NETWORK_OFF not in message(text, Network.ON)
    assert message("tests failed", Network.OFF) == "tests failed"


async def test_a_plan_is_accepted_without_a_screen_once_its_envelope_was_seen(tmp_path: Path) -> None:
    for line in ("agent_create bdi_agent p1", f"goal {GOAL}"):
        await run_command(tmp_path, line)
    code, answer, text = await run_command(tmp_path, "accept g1 spend=2")
    assert (code, answer["ok"]) == (3, False)
    assert "notes/a.txt" in text
    assert "--yes" in text
    assert (await run_command(tmp_path, "accept g1 spend=2 --yes"))[0] == 0


async def test_only_what_holds_a_result_is_marked_as_wrong(tmp_path: Path) -> None:
    await run_command(tmp_path, "agent_create bdi_agent p1")
    code, _, text = await run_command(tmp_path, "wrong p1:1")
    assert (code, "no result that could be wrong" in text) == (2, True)


async def test_a_pause_that_is_repeated_records_nothing(tmp_path: Path) -> None:
    async with _opened(tmp_path) as engine:
        await run_command_in(engine, "agent_create bdi_agent p1", quiet=True)
        await run_command_in(engine, "goal frobnicate the whatsit", quiet=True)
        await run_command_in(engine, "pause", quiet=True)
        before = len(await engine.store.last(99, "p1", kind=ev.AgentPaused.kind))
        await run_command_in(engine, "pause", quiet=True)
        assert len(await engine.store.last(99, "p1", kind=ev.AgentPaused.kind)) == before
