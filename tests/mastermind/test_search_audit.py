"""What an audit of the journal finds, with counts and the events that show it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.improvement import Concern, Finding
from engine.improve.search.audit import audit, findings_of
from engine.improve.search.components import THRESHOLDS
from engine.improve.search.history import History, PastAction
from tests.mastermind.test_search_flights import opener

NEVER = "raise SystemExit(1)\n"
EVERY_OTHER = """\
import pathlib
count = pathlib.Path("tries")
tries = int(count.read_text()) if count.exists() else 0
count.write_text(str(tries + 1))
raise SystemExit(tries % 2 == 0)
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = await opener(tmp_path)
    for name, text in (("never.py", NEVER), ("other.py", EVERY_OTHER)):
        (made.root / name).write_text(text, encoding="utf-8")
    assert (await made.submit(cmd.CreateAgent(agent="pilot"))).ok
    yield made
    await made.close()


async def flown(engine: Engine, text: str, agent: str = "pilot") -> None:
    """Have an agent pursue a goal to its end, with nobody to ask."""
    assert (await engine.submit(cmd.AdoptGoal(agent=agent, text=text))).ok
    goal = max((await engine.view(agent)).goals.values(), key=lambda one: one.order).id
    await engine.submit(cmd.Run(agent=agent, until=goal, ask=False))
    async for event in engine.events(0):
        ended = event.stream == agent and event.kind == ev.GoalEnded.kind
        if ended and getattr(ev.payload_of(event), "goal", "") == goal:
            return


def with_text(found: tuple[Finding, ...], part: str) -> Finding:
    (one,) = (finding for finding in found if part in finding.text)
    return one


async def test_failures_repairs_and_what_was_done_by_hand_are_counted_and_shown(engine: Engine) -> None:
    for _ in range(3):
        await flown(engine, "run 'python -S other.py'")
    await flown(engine, "run 'python -S never.py'")
    for path in ("a", "b"):
        said = cmd.CallTool(agent="pilot", tool="simple_coder", command="mkdir", args={"path": path})
        assert (await engine.submit(said)).ok
    assert not (await engine.submit(cmd.SkipStep(agent="pilot", step="s99"))).ok
    await flown(engine, "list the files")
    found = await audit(engine.workspace, engine.store)

    failing = with_text(found, "simple_coder.run of pilot failed in 6 of 9 calls (exit_status 6)")
    assert (failing.concern, failing.severity, failing.target) == (Concern.FAILURES, 7, "agent:pilot")
    assert len(failing.evidence) == 6
    for ref in failing.evidence:
        event = await engine.store.get(ref)
        assert event is not None
        assert event.kind == ev.ActionFinished.kind
    repaired = with_text(found, "“run python -S other.py” in pilot was repaired by RETRY_WITH_DELAY 3 times")
    assert repaired.concern is Concern.REPAIRS
    assert "the operator called a tool in pilot's place 2 times" in [one.text for one in found]
    assert not [one for one in found if "skipped" in one.text]


async def test_a_recovery_that_never_helped_is_found(engine: Engine) -> None:
    assert (await engine.submit(cmd.CreateAgent(agent="other"))).ok
    for agent in ("pilot", "other"):
        await flown(engine, "run 'python -S never.py'", agent)
    findings = await audit(engine.workspace, engine.store)
    vain = with_text(findings, "RETRY_WITH_DELAY after TOOL_EXECUTION_ERROR helped in 0 of 4")
    assert vain.target == THRESHOLDS


async def test_nothing_to_find_is_a_plain_answer(engine: Engine) -> None:
    await flown(engine, "list the files")
    assert await audit(engine.workspace, engine.store) == ()


def test_slow_calls_budgets_and_calls_allowed_again_and_again_are_found() -> None:
    acts = [PastAction(f"pilot:{number}", "pilot", "t", "go", ok=True, duration_ms=40) for number in range(9)]
    acts[4].duration_ms = 2_000
    history = History(
        acts=acts,
        granted=[(f"pilot:{n}", "pilot", "t.go") for n in (20, 21, 22)],
        budgets=[("pilot:30", "pilot", "the budget of 5 actions\x1b[2J is used up")],
    )
    slow, allowed, held = (
        with_text(findings_of(history), part)
        for part in ("was slow in 1 of 9", "allowed t.go", "held by a budget")
    )
    assert (slow.concern, slow.evidence) == (Concern.SPEED, ("pilot:4",))
    assert "2000 ms at worst, where 40 ms is the median" in slow.text
    assert allowed.evidence == ("pilot:20", "pilot:21", "pilot:22")
    assert "\x1b" not in held.text
