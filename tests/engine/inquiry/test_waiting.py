from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.goals import Goal, GoalStatus
from engine.core.metacognition import BackgroundJob, MetaTask, Signal, Stuck
from engine.core.plan import Op, Plan, PlanStep
from engine.core.reasoner import REASONER, Generation, GenerationStage, MindState
from engine.core.reasons import free_text
from engine.core.recovery import ActiveAction, Intervention, OperatorRequest, Retry, Rewinding
from engine.core.sandbox import SHELL_COMMAND, SHELL_TOOL, Handover, Job, ReturnedShell
from engine.core.state import AgentState
from engine.inquiry.waiting import Waiting, WaitKind, waiting_for, with_newest_event
from tests.engine.inquiry.inquiry_events import Stream

AT = "2026-01-01T00:00:00.000Z"


def working() -> AgentState:
    """An agent that runs, with a goal and a step to take."""
    state = AgentState(agent_id="pilot", run=RunState.RUNNING, at=AT, current_goal="g1", perceived=True)
    state.goals["g1"] = Goal("g1", "serve", status=GoalStatus.ACTIVE, event="pilot:2")
    state.plans["g1"] = Plan("p1", "g1", steps=(PlanStep("s1", "list", tool="t", command="list"),))
    return state


def _acts(state: AgentState) -> None:
    state.action = ActiveAction("a1", "t", "list", {}, "agent", "s1", "g1", started=True, at=AT)


def _readies(state: AgentState) -> None:
    state.action = ActiveAction("a1", "t", "list", {}, "agent", "s1", "g1", at=AT)


def _pauses(state: AgentState) -> None:
    state.run, state.run_reason, state.run_event = RunState.PAUSED, free_text("lunch"), "pilot:9"


def _breaks(state: AgentState) -> None:
    _pauses(state)
    state.breakpoint_hit = "s1"


def _spends(state: AgentState) -> None:
    _pauses(state)
    state.run_reason = free_text("BUDGET: $5.00 of $5.00")


def _stops(state: AgentState) -> None:
    state.run, state.run_reason = RunState.STOPPED, free_text("enough")


def _retries(state: AgentState) -> None:
    state.retry = Retry("s1", 2, 3, 4.0, "pilot:7", "g1", AT)


def _asks(state: AgentState) -> None:
    state.intervention = Intervention("g1", "s1", "no network", event="pilot:8")


def _hands_over(state: AgentState) -> None:
    state.handover = Handover("a1", event="pilot:8")


def _plans(state: AgentState) -> None:
    state.plans.clear()


def _thinks(state: AgentState) -> None:
    state.plans["g1"] = Plan("p1", "g1", steps=(PlanStep("s1", "what next", op=Op.THINK),))


def _rests(state: AgentState) -> None:
    state.goals["g1"] = replace(state.goals["g1"], status=GoalStatus.ACHIEVED, event="pilot:30")


def _looks_back(state: AgentState) -> None:
    _rests(state)
    state.meta = replace(state.meta, running=(BackgroundJob("bg1", MetaTask.REFLECT, "due", 1, at=AT),))


def _serves(state: AgentState) -> None:
    _rests(state)
    state.jobs["j1"] = Job("j1", "python -m http.server", AT)


def _is_deleted(state: AgentState) -> None:
    state.deleted = True


def _rewinds(state: AgentState) -> None:
    state.rewinding = Rewinding(7, "both", "old", "now", "pilot:9")


def _freezes(state: AgentState) -> None:
    _acts(state)
    state.frozen, state.run_event = True, "pilot:9"


def _calls(state: AgentState) -> None:
    state.requests.append(OperatorRequest("t", "ls", {}, "operator:o", "pilot:5"))


def _takes_the_shell(state: AgentState) -> None:
    state.requests.append(OperatorRequest(SHELL_TOOL, SHELL_COMMAND, {}, "operator:o", "pilot:5"))


def _returns(state: AgentState) -> None:
    state.returned = ReturnedShell("a1", {}, "", event="pilot:6")


def _looks_round(state: AgentState) -> None:
    state.perceived, state.run_event = False, "pilot:3"


def _is_cut_off(state: AgentState) -> None:
    _acts(state)
    _stops(state)


def _holds_the_shell(state: AgentState) -> None:
    state.action = ActiveAction("a1", SHELL_TOOL, SHELL_COMMAND, {}, "operator:o", started=True, at=AT)


def _generates(state: AgentState) -> None:
    state.generations["p1"] = Generation("p1", "+!serve", stage=GenerationStage.ASKED, event="pilot:7")


def _holds_plans(state: AgentState) -> None:
    state.generations["p1"] = Generation("p1", "+!serve", stage=GenerationStage.HELD, event="pilot:7")


def _sleeps(state: AgentState) -> None:
    state.agent_type = REASONER
    state.mind = MindState(idle=True, due_ms=5_000.0, now_ms=2_000.0)


def _goes_in_a_circle(state: AgentState) -> None:
    _acts(state)
    state.meta = replace(state.meta, stuck=Stuck((Signal("repeated", "3 times the same: ls"),)))


@pytest.mark.parametrize(
    ("happens", "kind", "words", "since", "event"),
    [
        (_acts, WaitKind.TOOL, "a1 t.list runs", AT, ""),
        (_readies, WaitKind.WORKSPACE, "made ready", AT, ""),
        (_pauses, WaitKind.GATE, "paused before acting: lunch", "", "pilot:9"),
        (_breaks, WaitKind.GATE, "breakpoint on s1", "", "pilot:9"),
        (_spends, WaitKind.BUDGET, "$5.00", "", "pilot:9"),
        (_stops, WaitKind.GATE, "stopped (enough)", "", ""),
        (_retries, WaitKind.RETRY, "s1 is tried again, 2 of 3, after 4 s", AT, "pilot:7"),
        (_asks, WaitKind.OPERATOR, "you: no network", "", "pilot:8"),
        (_hands_over, WaitKind.OPERATOR, "settle", "", "pilot:8"),
        (_plans, WaitKind.MODEL, "procedural plans g1", "", "pilot:2"),
        (_thinks, WaitKind.MODEL, "decides what to do next", "", "pilot:2"),
        (_rests, WaitKind.NOTHING, "a goal", "", "pilot:30"),
        (_looks_back, WaitKind.BACKGROUND, "bg1 reflect", AT, ""),
        (_serves, WaitKind.BACKGROUND, "http.server", AT, ""),
        (_rewinds, WaitKind.WORKSPACE, "brought back to event 7", "", "pilot:9"),
        (_freezes, WaitKind.GATE, "its processes are frozen", "", "pilot:9"),
        (_calls, WaitKind.TOOL, "your call t.ls begins", "", "pilot:5"),
        (_takes_the_shell, WaitKind.TOOL, "your shell is opened", "", "pilot:5"),
        (_returns, WaitKind.WORKSPACE, "compared with those before your shell", "", "pilot:6"),
        (_looks_round, WaitKind.WORKSPACE, "looks at its workspace", "", "pilot:3"),
        (_is_cut_off, WaitKind.TOOL, "it is being ended", AT, ""),
        (_holds_the_shell, WaitKind.OPERATOR, "you hold its shell", AT, ""),
        (_generates, WaitKind.MODEL, "a model makes plans for +!serve", "", "pilot:7"),
        (_holds_plans, WaitKind.OPERATOR, "wait for your approval", "", "pilot:7"),
        (_sleeps, WaitKind.TIME, "a moment that its program waits for", AT, ""),
        (_goes_in_a_circle, WaitKind.TOOL, "may be stuck: 3 times the same: ls", AT, ""),
        (_is_deleted, WaitKind.NOTHING, "deleted", "", ""),
        (lambda state: None, WaitKind.ITSELF, "about to continue", AT, ""),
    ],
)
def test_what_an_agent_waits_for_is_always_said(
    happens: Callable[[AgentState], None], kind: WaitKind, words: str, since: str, event: str
) -> None:
    state = working()
    happens(state)
    found = waiting_for(state)
    assert found.kind is kind
    assert words in found.what
    assert found.since == since
    assert not event or found.event == event


def test_a_journal_in_trouble_comes_before_all_else() -> None:
    state = working()
    _asks(state)
    assert waiting_for(state, trouble="disk full").kind is WaitKind.JOURNAL


def test_what_runs_is_waited_for_before_the_operator() -> None:
    state = working()
    _acts(state)
    _pauses(state)
    found = waiting_for(state)
    assert found.kind is WaitKind.TOOL
    assert "nothing starts after it" in found.what


def test_a_new_agent_waits_for_a_goal() -> None:
    assert waiting_for(AgentState()).kind is WaitKind.NOTHING


@pytest.mark.parametrize(
    ("found", "newest", "kind", "words"),
    [
        (
            WaitKind.WORKSPACE,
            ev.ParametersAsked(action="a1", model="m", missing=("path",)),
            WaitKind.MODEL,
            "m is",
        ),
        (
            WaitKind.WORKSPACE,
            ev.ActionHeld(action="a1", reason="paused"),
            WaitKind.GATE,
            "a1 is held: paused",
        ),
        (WaitKind.MODEL, ev.ModelSaid(stream="text", text="so"), WaitKind.MODEL, "its answer is coming in"),
        (WaitKind.OPERATOR, ev.ModelSaid(stream="text", text="so"), WaitKind.OPERATOR, "before"),
    ],
)
def test_the_newest_event_says_it_more_exactly(
    found: WaitKind, newest: ev.Payload, kind: WaitKind, words: str
) -> None:
    stream = Stream()
    stream.add(newest)
    told = with_newest_event(Waiting(found, "before"), stream.events[-1])
    assert told.kind is kind
    assert words in told.what
