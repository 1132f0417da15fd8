"""An automatic reviewer looks at what the operator would be asked: it may deny it, and never allow it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, QuickClock, act, journal_holds_together

from app.commands.folder_items import items_of
from app.commands.settings import Settings
from engine.agent.shared import EngineConfig
from engine.agent.steering.reviews import ReviewerChoice
from engine.agent.steering.rules import PRESETS
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.approvals import Answer, Review
from engine.inquiry.inbox import review_text
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.messages_server import MessagesServer, failure, object_call

WRITE = act("write", path="src/a.py", content="1")


def program(code: str) -> ReviewerChoice:
    return ReviewerChoice((sys.executable, "-c", code), timeout_s=60)


def says(answer: str, reason: str = "") -> str:
    given = json.dumps({"answer": answer, "reason": reason})
    return f"import sys, json; json.load(sys.stdin); print({given!r})"


@pytest.fixture
def fly(tmp_path: Path, open_flight: Callable[..., Any]) -> Callable[..., Any]:
    async def opened(choice: ReviewerChoice, **more: Any) -> Flight:
        config = EngineConfig(approvals=PRESETS["ask-changes"], reviewer=choice, home=tmp_path, **more)
        made: Flight = await open_flight(tmp_path / "ws", config=config)
        return made

    return opened


async def asked(flight: Flight) -> Review | None:
    """What the reviewer said of the question that waits."""
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    state = await flight.until(lambda s: s.approvals.question)
    assert not (flight.sandbox / "src/a.py").exists()
    return state.approvals.review


async def test_its_word_is_shown_with_the_question_and_allows_nothing(fly: Callable[..., Any]) -> None:
    flight = await fly(program(says("allow", "it is only a file")))
    review = await asked(flight)
    assert review is not None
    assert (review.answer, review.reason) == (Answer.ALLOW, "it is only a file")
    state = await flight.state()
    assert "has nothing against it: it is only a file" in review_text(state, state.approvals.question)
    (need,) = await flight.engine.inbox()
    assert "it is only a file" in need.what
    await flight.do(cmd.AnswerApproval, allow=True)
    await flight.until(lambda s: not s.open_goals)
    assert len(await flight.payloads(ev.CallReviewed)) == 1, "once for each call"


async def test_it_denies_and_after_three_refusals_in_a_row_the_operator_has_the_agent(
    fly: Callable[..., Any],
) -> None:
    flight = await fly(program(says("deny", "not for the goal")))
    for number in range(1, 4):
        await flight.do(cmd.Pause)
        await flight.plan(WRITE)
        await flight.do(cmd.Run) if number == 1 else await flight.do(cmd.Step)
        state = await flight.until(lambda s: s.intervention)
        assert state.failures[-1].message.startswith("not allowed: the reviewer (command python")
        assert "not for the goal" in state.failures[-1].message
        assert not await flight.payloads(ev.ApprovalAsked)
        if number < 3:
            await flight.do(cmd.AbortGoal, goal=state.open_goals[0].id)
    state = await flight.until(lambda s: s.run is RunState.PAUSED and s.run_reason.is_a("run.reviewer"))
    assert "refused 3 calls in a row" in state.run_reason
    await flight.do(cmd.AbortGoal, goal=state.open_goals[0].id)
    await flight.do(cmd.Run)
    assert (await flight.state()).approvals.refusals == 0


@pytest.mark.parametrize(
    ("code", "code_of"),
    [
        ("import time\nwhile True: time.sleep(9)", "review.late"),
        ("import sys; sys.exit(3)", "review.failed"),
        (f"{says('deny')}; sys.exit(3)", "review.failed"),
        ("print('yes, do it')", "review.nonsense"),
        ('print(\'{"answer": "approve"}\')', "review.nonsense"),
        ("print('[' * 100000)", "review.nonsense"),
        ("while True: print('x' * 10000)", "review.nonsense"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "review.failed"),
    ],
)
async def test_one_that_hangs_crashes_or_talks_nonsense_means_that_the_operator_is_asked_and_told(
    fly: Callable[..., Any], code: str, code_of: str
) -> None:
    seconds = 0.5 if code_of == "review.late" else 60
    flight = await fly(ReviewerChoice((sys.executable, "-c", code), timeout_s=seconds))
    review = await asked(flight)
    assert review is not None
    assert review.trouble.is_a(code_of)
    assert review.answer is Answer.ASK
    state = await flight.state()
    assert "has no verdict" in review_text(state, state.approvals.question)


async def test_a_program_that_is_not_there_means_that_the_operator_is_asked(fly: Callable[..., Any]) -> None:
    review = await asked(await fly(ReviewerChoice(("no-such-program-here",))))
    assert review is not None
    assert review.trouble.is_a("review.failed")


async def test_it_is_given_the_call_and_the_goal_and_runs_in_the_operators_own_directory(
    fly: Callable[..., Any], tmp_path: Path
) -> None:
    code = "import sys, os; open('seen', 'w').write(sys.stdin.read()); print('{\"answer\": \"ask\"}')"
    await asked(await fly(program(code)))
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["tool"], seen["command"], seen["paths"]) == ("simple_coder", "write", ["src/a.py"])
    assert seen["goal"] == "list the files"
    assert seen["args"]["content"] == "1"


async def test_what_is_allowed_by_a_rule_is_not_reviewed(fly: Callable[..., Any]) -> None:
    flight = await fly(program(says("deny")))
    await flight.do(cmd.GrantRule, rule="write paths=src/**")
    await flight.plan(WRITE)
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    assert not await flight.payloads(ev.CallReviewed)


async def test_a_model_reviews_on_the_budget_and_its_call_is_recorded(tmp_path: Path) -> None:
    script = [
        object_call("give_verdict", answer="deny", reason="a trap"),
        failure(401, "authentication_error"),
    ]
    async with MessagesServer(script) as server:
        choice = ModelChoice(Endpoint(server.url), "claude-opus-4-6", retries=Retries(attempts=1))
        reviewer = ReviewerChoice(timeout_s=60)
        config = EngineConfig(approvals=PRESETS["ask-changes"], reviewer=reviewer, model=choice)
        flight = Flight(tmp_path / "ws", QuickClock(), config)
        await flight.open()
        await flight.do(cmd.CreateAgent, config={"thinker": "procedural"})
        await flight.plan(WRITE)
        await flight.do(cmd.Run)
        state = await flight.until(lambda s: s.intervention)
        assert "the reviewer (model claude-opus-4-6) denies it: a trap" in state.failures[-1].message
        (call,) = await flight.payloads(ev.ModelCalled)
        assert call.purpose.endswith("review")
        assert "material" in server.requests[0].said()
        await flight.do(cmd.RetryStep, step=state.intervention.step)
        state = await flight.until(lambda s: s.approvals.question)
        assert state.approvals.review.trouble.is_a("review.failed")
        await flight.engine.close()
    await journal_holds_together(tmp_path / "ws")


# ------------------------------------------------------------------ settings


def test_a_reviewer_counts_in_the_operators_own_settings_and_never_in_a_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir(mode=0o700)
    folder.mkdir()
    monkeypatch.setenv("PILOTHOUSE_HOME", str(home))
    theirs = '[approvals]\npreset = "ask"\nreviewer = "command evil"\n'
    (folder / "pilothouse.toml").write_text(theirs)
    settings = Settings.load(folder)
    assert settings.reviewer is None
    (item,) = [item for item in items_of(settings.trust) if item.path == "pilothouse.toml"]
    assert "approvals: a reviewer, which does not count in a folder" in item.would
    assert any("else" in line or "no rule" in line for line in item.would), "nothing hides its policy"
    settings = Settings.load(folder, trust=settings.trust.digest)
    assert settings.reviewer is None
    assert any("a reviewer counts in your own settings only" in each for each in settings.problems)
    assert settings.approvals == PRESETS["ask"], "its policy counts all the same"
    own = (
        '[approvals]\nreviewer = "command check-it --strict"\nreviewer_timeout_s = 5\nreviewer_jail = true\n'
    )
    (home / "pilothouse.toml").write_text(own)
    assert Settings.load(folder).reviewer == ReviewerChoice(("check-it", "--strict"), True, 5.0)


@pytest.mark.parametrize(
    "given",
    [
        *(
            {"reviewer": who}
            for who in ("", "evil", "command", "command ./here", "command a/b", "command 'x", 7)
        ),
        *({"reviewer": "model", "reviewer_timeout_s": seconds} for seconds in (0, -1, 1e9, True, "9")),
        {"reviewer": "model", "reviewer_jail": "yes"},
    ],
)
def test_a_reviewer_that_cannot_be_read_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"reviewer|quotation"):
        ReviewerChoice.read(given)
