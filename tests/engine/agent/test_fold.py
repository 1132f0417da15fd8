"""State is a fold: the same whichever way it is come to, for any events at all."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from engine_flight import PATIENCE_S, Flight, act
from hypothesis import given
from hypothesis import strategies as st

from engine.bdi.errors import Position
from engine.bdi.trace import FrameView, IntentionView, ItemView
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import (
    Correction,
    Entry,
    ErrorCode,
    Extraction,
    ResultStatus,
    Reversibility,
    SandboxSession,
    Stage,
    StageRecord,
    Survey,
)
from engine.core.agents import AgentConfig
from engine.core.approvals import Answer, Call, Envelope, LearnedRule, Policy, Rule, Scope, Source
from engine.core.beliefs import Belief
from engine.core.breakpoints import read_break
from engine.core.budgets import SpendingLimits
from engine.core.fold import SNAPSHOT_FORMAT, apply, copy_state, dump_state, fold, load_state
from engine.core.goals import Goal, GoalStatus
from engine.core.journal import GENESIS, Event, JournalError, chain_hash
from engine.core.metacognition import JobOutcome, MetaSettings, MetaTask, Signal
from engine.core.plan import Plan, PlanStep, StepStatus
from engine.core.reasoner import (
    REASONER,
    EndedIntention,
    GeneratedPlan,
    HeldBelief,
    MindState,
    ProposedPlan,
    Stride,
    WantedAction,
)
from engine.core.reasons import Reason, free_text
from engine.core.recovery import FailureKind, OpenWorkflow, Strategy
from engine.core.rewind import GoalCourse, RewindScope
from engine.core.sandbox import ItemKind, OfferedBelief, StopGrade, StopItem, StopReceipt
from engine.core.state import AgentState
from engine.core.thinking import Decision, DecisionKind, RecentAction

TEXTS = st.text(max_size=8) | st.sampled_from(["\ud800", "\x1b[31m", "a\0b", "\U0001f6f0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
GOALS = st.sampled_from(["g1", "g2", "g3"])
STEPS = st.sampled_from(["s1", "s2", "s3", "s12"])
ACTIONS = st.sampled_from(["a1", "a2"])
ARGS = st.dictionaries(st.text(max_size=3), VALUES, max_size=2)
PLAN_STEPS = st.lists(
    st.builds(
        PlanStep, id=STEPS, description=TEXTS, command=TEXTS, args=ARGS, status=st.sampled_from(StepStatus)
    ),
    max_size=3,
    unique_by=lambda step: step.id,
).map(tuple)
SESSIONS = st.builds(SandboxSession, cwd=st.sampled_from([".", "a"]), autonomous=st.booleans())
JOBS = st.sampled_from(["j1", "j2"])
OFFERS = st.lists(st.builds(OfferedBelief, TEXTS, VALUES, TEXTS), max_size=2).map(tuple)
HELD = st.builds(HeldBelief, TEXTS, st.just(("self",)))
ITEMS = st.lists(
    st.builds(ItemView, TEXTS, st.integers(0, 2), st.booleans(), st.just(Position(1, 2))), max_size=1
)
FRAMES = st.lists(
    st.builds(FrameView, TEXTS, TEXTS, ITEMS.map(tuple), st.just((("X", "1"),)), st.just(0)), max_size=1
).map(tuple)
DECISIONS = st.builds(
    Decision, st.sampled_from(DecisionKind), TEXTS, deferred=st.lists(TEXTS, max_size=1).map(tuple)
)
SIGNS = st.just(()) | st.just((Signal("repeated", free_text("x")),))
RULES = st.builds(Rule, st.sampled_from(Answer), TEXTS, TEXTS, st.just({"path": "a*"}))
POLICIES = st.builds(Policy, st.lists(RULES, max_size=1).map(tuple), st.sampled_from(Answer))
GRANTS = st.sampled_from(["r1", "r2"])
PROPOSALS = st.sampled_from(["l1", "l2"])
GENERATIONS = st.sampled_from(["q1", "q2"])
POINTS = st.sampled_from(["b1", "b2", "b3"])
SPECS = st.sampled_from(
    [
        "step s1 when actions < 2",
        "tool *",
        "goal ended g1 once",
        "plan",
        "belief * after 2",
        "belief a* none->* when not belief.a",
        "error *",
        "result a",
        "spend g1 $0.25",
        "spend 5 tokens",
        "every 2",
        "intention",
    ]
).map(read_break)
BACKGROUND, TASKS = st.sampled_from(["bg1", "bg2"]), st.sampled_from(MetaTask)
FAILURES, STRATEGIES = st.sampled_from(FailureKind), st.sampled_from(Strategy)

COURSES = st.builds(
    GoalCourse,
    order=st.just({"goals": ("g1", "g2", "g7"), "plans": ("g1",), "beliefs": ("job.j1", "k")}),
    goals=st.dictionaries(GOALS, st.builds(Goal, GOALS, TEXTS), max_size=1),
    plans=st.dictionaries(
        st.just("g1"), st.builds(Plan, st.just("p1"), st.just("g1"), steps=PLAN_STEPS), max_size=1
    ),
    beliefs=st.dictionaries(st.just("k"), st.builds(Belief, st.just("k"), VALUES), max_size=1),
    current_goal=GOALS | st.just(""),
    tried=st.dictionaries(STEPS, st.just((Strategy.ALTERNATIVE_TOOL,)), max_size=1),
    workflows=st.lists(st.builds(OpenWorkflow, TEXTS, GOALS), max_size=1).map(tuple),
    recent=st.lists(st.builds(RecentAction, *[TEXTS] * 3, ARGS, st.booleans(), TEXTS), max_size=1).map(tuple),
    sandbox=SESSIONS,
    world=ARGS,
)
SCOPES = st.sampled_from(RewindScope)

FIELDS: dict[type[ev.Payload], dict[str, Any]] = {
    ev.RewindBegun: {"to": st.just(1), "what": SCOPES, "snapshot": TEXTS, "saved": TEXTS},
    ev.RewindFailed: {"reason": TEXTS, "partly": st.booleans()},
    ev.RewindCutOff: {"to": st.just(1)},
    ev.Rewound: {"to": st.just(1), "what": SCOPES, "course": st.none() | COURSES},
    ev.AgentForked: {"parent": st.just("b:3"), "course": COURSES, "next_id": st.just({"g": 2})},
    ev.AgentCreated: {
        "agent_id": st.just("a"),
        "agent_type": TEXTS | st.just(REASONER),
        "config": st.builds(AgentConfig, thinker=st.sampled_from(["procedural", "claude"])),
    },
    ev.AgentOpened: {"session": TEXTS, "seed": st.integers(0, 9)},
    ev.AgentDeleted: {},
    ev.AgentResumed: {"max_loops": st.none() | st.integers(1, 3), "until": st.none() | GOALS},
    ev.AgentPaused: {"reason": TEXTS},
    ev.StepGranted: {
        "stride": st.none()
        | st.just(Stride("over", 1, 2))
        | st.builds(Stride, st.sampled_from(["step", "over", "out"]), goal=GOALS, step=STEPS)
    },
    ev.AgentStopped: {"reason": TEXTS},
    ev.AgentHeld: {"grade": st.sampled_from(StopGrade), "reason": TEXTS},
    ev.AgentThawed: {},
    ev.StopObserved: {
        "receipt": st.builds(
            StopReceipt,
            TEXTS,
            TEXTS,
            st.sampled_from(StopGrade),
            st.booleans(),
            st.booleans(),
            st.just((StopItem(ItemKind.JOB, "j1", "a job", "frozen", 2, ("a", "b")),)),
        )
    },
    ev.CommandReceived: {"command": ARGS},
    ev.GoalAdopted: {
        "goal": GOALS,
        "text": TEXTS,
        "parent": st.none() | GOALS,
        "parent_step": st.none() | STEPS,
    },
    ev.GoalSelected: {"goal": GOALS},
    ev.GoalMoved: {"goal": GOALS, "parent": st.none() | GOALS},
    ev.GoalChanged: {"goal": GOALS, "text": TEXTS, "priority": st.integers(-3, 3)},
    ev.GoalEnded: {"goal": GOALS, "status": st.sampled_from(GoalStatus), "reason": TEXTS},
    ev.BeliefAdded: {"key": TEXTS, "value": VALUES, "ttl_s": st.none() | st.floats(0, 9)},
    ev.BeliefRemoved: {"key": TEXTS},
    ev.WorldPerceived: {"facts": ARGS, "session": SESSIONS, "world": st.none() | ARGS},
    ev.PlanAsked: {"goal": GOALS, "thinker": TEXTS},
    ev.PlanRejected: {"goal": GOALS, "problems": st.just(("no",))},
    ev.PlanAdopted: {"plan": st.just("p1"), "goal": GOALS, "steps": PLAN_STEPS},
    ev.PlanRevised: {"plan": st.just("p1"), "goal": GOALS, "change": TEXTS, "steps": PLAN_STEPS},
    ev.ApprovalsSet: {"source": st.sampled_from(Source), "policy": POLICIES},
    ev.ApprovalAsked: {
        "action": ACTIONS,
        "step": STEPS,
        "goal": GOALS,
        "call": st.builds(Call, TEXTS, TEXTS, ARGS, paths=st.just(("a",))),
        "key": TEXTS,
        "why": TEXTS,
        "offered": RULES,
    },
    ev.ApprovalAnswered: {
        "action": ACTIONS,
        "step": STEPS,
        "goal": GOALS,
        "key": TEXTS,
        "allowed": st.booleans(),
        "reason": TEXTS,
    },
    ev.RuleGranted: {"grant": GRANTS, "rule": RULES, "scope": st.sampled_from(Scope)},
    ev.RuleRevoked: {"grant": GRANTS},
    ev.CallReviewed: {
        "action": ACTIONS,
        "key": TEXTS,
        "answer": st.sampled_from(Answer),
        "reason": TEXTS,
        "by": TEXTS,
    },
    ev.ContextRestored: {"what": ACTIONS, "about": TEXTS, "text": TEXTS, "tokens": st.integers(0, 9)},
    ev.ContextReleased: {"what": ACTIONS},
    ev.RuleProposed: {"proposal": PROPOSALS, "learned": st.builds(LearnedRule, RULES, st.integers(2, 9))},
    ev.ProposalClosed: {
        "proposal": PROPOSALS,
        "reason": st.sampled_from([Reason("proposal.declined"), Reason("proposal.taken", grant="r1")]),
    },
    ev.GrantsNotCounted: {
        "grants": st.tuples(GRANTS),
        "once": st.tuples(STEPS),
        "envelopes": st.tuples(GOALS),
        "journal": st.booleans(),
    },
    ev.PlanAccepted: {
        "plan": st.just("p1"),
        "goal": GOALS,
        "steps": PLAN_STEPS,
        "envelope": st.none() | st.builds(Envelope, GOALS, spend_usd=st.none() | st.just(1.5)),
    },
    ev.EnvelopeRevoked: {"goal": GOALS},
    ev.ReplanHeld: {"goal": GOALS, "change": TEXTS},
    ev.StepEnded: {"goal": GOALS, "step": STEPS, "status": st.sampled_from(StepStatus), "summary": TEXTS},
    ev.ActionRequested: {
        "action": ACTIONS,
        "step": STEPS | st.just(""),
        "tool": TEXTS,
        "command": TEXTS,
        "args": ARGS,
    },
    ev.ParametersAsked: {"action": ACTIONS, "model": TEXTS, "missing": st.just(("path",))},
    ev.ParametersProcessed: {
        "action": ACTIONS,
        "args": ARGS,
        "corrections": st.lists(
            st.builds(Correction, TEXTS, VALUES, VALUES, st.just("near path"), TEXTS), max_size=2
        ).map(tuple),
        "stages": st.just((StageRecord(Stage.PATHS, {"path": "a"}, {"path": "not there"}),)),
        "survey": st.just(Survey(("path",), (Entry("A"),))),
        "extraction": st.none() | st.builds(Extraction, TEXTS, ARGS),
    },
    ev.OperatorNeeded: {"action": ACTIONS, "why": TEXTS, "request": st.booleans()},
    ev.ActionWithdrawn: {"action": ACTIONS, "reason": TEXTS},
    ev.ActionStarted: {"action": ACTIONS, "undo": st.sampled_from(Reversibility)},
    ev.ActionOutput: {"action": ACTIONS, "stream": st.just("stdout"), "text": TEXTS},
    ev.ActionFinished: {
        "action": ACTIONS,
        "status": st.sampled_from(ResultStatus),
        "code": st.none() | st.sampled_from(ErrorCode),
        "result": ARGS,
        "session": st.none() | SESSIONS,
        "summary": TEXTS,
    },
    ev.ActionCancelled: {"action": ACTIONS, "reason": TEXTS},
    ev.ActionOutcomeUnknown: {"action": ACTIONS},
    ev.OperatorActionQueued: {"tool": TEXTS, "command": TEXTS, "args": ARGS},
    ev.FailureRecorded: {"failure": FAILURES, "message": TEXTS, "goal": GOALS, "step": STEPS},
    ev.RecoveryChosen: {
        "failure": FAILURES,
        "strategy": STRATEGIES,
        "goal": GOALS,
        "step": STEPS | st.just(""),
    },
    ev.RecoveryEnded: {
        "failure": FAILURES,
        "strategy": STRATEGIES,
        "goal": GOALS,
        "step": STEPS | st.just(""),
        "success": st.booleans(),
        "rests_until": st.integers(0, 3),
    },
    ev.RecoveryHastened: {"goal": GOALS},
    ev.InterventionOpened: {"reason": TEXTS, "goal": GOALS, "step": STEPS},
    ev.InterventionClosed: {"resolution": TEXTS},
    ev.BreakpointSet: {"step": STEPS},
    ev.BreakpointCleared: {"step": STEPS},
    ev.BreakpointHit: {"step": STEPS, "breakpoint": POINTS | st.just(""), "at": STEPS | st.just("")},
    ev.BreakpointAdded: {"breakpoint": POINTS, "spec": SPECS},
    ev.BreakpointChanged: {"breakpoint": POINTS, "enabled": st.booleans(), "cleared": st.booleans()},
    ev.ThoughtRecorded: {"text": TEXTS},
    ev.SnapshotTaken: {
        "action": ACTIONS,
        "snapshot": st.just("0f"),
        "files": st.just(1),
        "bytes": st.just(2),
        "new_bytes": st.just(0),
    },
    ev.SnapshotWaived: {"step": STEPS},
    ev.JobStarted: {"job": JOBS, "command": TEXTS, "action": ACTIONS},
    ev.JobEnded: {"job": JOBS, "ended": st.just("exit"), "code": st.none() | st.integers(-9, 1)},
    ev.ChangesOffered: {"action": ACTIONS, "offers": OFFERS, "session": st.none() | SESSIONS},
    ev.ChangesSettled: {"accepted": st.just(("a",)), "session": st.none() | SESSIONS},
    ev.ReasonerAdvanced: {
        "phases": st.integers(1, 9),
        "steps": st.integers(0, 3),
        "mind": st.builds(MindState, idle=st.booleans(), poised=st.booleans()),
        "intentions": st.lists(
            st.builds(IntentionView, st.integers(1, 3), TEXTS, TEXTS, FRAMES), max_size=2
        ).map(tuple),
        "ended": st.lists(st.builds(EndedIntention, st.integers(1, 3), TEXTS), max_size=1).map(tuple),
        "believed": st.lists(HELD, max_size=2).map(tuple),
        "forgotten": st.lists(TEXTS, max_size=1).map(tuple),
        "wanted": st.lists(
            st.builds(WantedAction, st.integers(1, 3), *[TEXTS] * 3, ARGS, st.just(1)), max_size=1
        ).map(tuple),
        "generated": st.none() | st.just((GeneratedPlan("l", "+!g", "+!g.", "m", "q1", 1),)),
        "stride_over": st.booleans(),
    },
    ev.ModelCalled: {
        "goal": GOALS,
        "model": TEXTS,
        "request": ARGS,
        "tokens": st.integers(0, 9),
        "cost_usd": st.none() | st.just(0.25),
        "shares": st.just((("goal", 3),)),
        "window": st.integers(0, 9),
    },
    ev.BudgetReached: {
        "reason": TEXTS,
        "budget": st.sampled_from(["", "workspace", "goal g1"]),
        "of": st.sampled_from(["usd", "actions"]),
    },
    ev.BudgetEased: {"budget": TEXTS},
    ev.WorkflowEntered: {"workflow": st.sampled_from(["w1", "w2"]), "goal": GOALS},
    ev.WorkflowLeft: {"workflow": st.sampled_from(["w1", "w2"]), "status": st.just("completed")},
    ev.AgentConfigured: {
        "settings": st.sampled_from([{}, {"recovery": {"max_consecutive_errors": 5}}]),
        "max_consecutive_errors": st.integers(1, 9),
    },
    ev.BudgetSet: {
        "goal": st.sampled_from(["", "g1"]),
        "limits": st.none() | st.just(SpendingLimits(usd=1.5)),
    },
    ev.DecisionAsked: {"goal": GOALS, "step": STEPS, "thinker": TEXTS},
    ev.DecisionMade: {"goal": GOALS, "step": STEPS, "thinker": TEXTS, "decision": DECISIONS},
    ev.TimePassed: {},
    ev.BeliefTold: {"literal": TEXTS},
    ev.MessageHeard: dict.fromkeys(("sender", "performative", "content"), TEXTS) | {"number": st.just(1)},
    ev.IntentionSteered: {"intention": st.integers(1, 3), "how": st.sampled_from(["drop", "suspend"])},
    ev.MindBreakpointChanged: {"breakpoint": st.sampled_from(["b1", "b2"]), "cleared": st.booleans()},
    ev.MindBreakpointHit: {"breakpoint": st.sampled_from(["b1", "b2"]), "what": TEXTS},
    ev.TracingSet: {"on": st.booleans()},
    ev.GenerationBegun: {"generation": GENERATIONS, "goal": TEXTS, "trigger": st.just("reactive")},
    ev.GenerationAsked: {
        "generation": GENERATIONS,
        "attempt": st.integers(1, 3),
        **dict.fromkeys(("model", "system", "prompt"), TEXTS),
        "config": st.just({"temperature": 0.5}),
    },
    ev.GenerationAnswered: {"generation": GENERATIONS, "answer": TEXTS, "tokens": st.integers(0, 9)},
    ev.GenerationReviewed: {"generation": GENERATIONS, "plans": st.just((ProposedPlan("+!g.", ("no",)),))},
    ev.PlansHeld: {"generation": GENERATIONS},
    ev.PlansDecided: {"generation": GENERATIONS, "decision": st.sampled_from(["approve", "reject"])},
    ev.GenerationSettled: {"generation": GENERATIONS, "plans": st.just(()) | st.just(("+!g.",))},
    ev.MetacognitionBegun: {"settings": st.builds(MetaSettings, st.booleans()), "memory": st.booleans()},
    ev.BackgroundStarted: {"job": BACKGROUND, "task": TASKS, "why": TEXTS, "goal": GOALS},
    ev.BackgroundEnded: {
        "job": BACKGROUND,
        "outcome": st.sampled_from(JobOutcome),
        "feedback": TEXTS,
        "replan": st.booleans(),
        "counts": st.dictionaries(st.sampled_from(["episodic", "total"]), st.integers(0, 9), max_size=2),
    },
    ev.ThresholdsAdapted: {
        "overdue": st.booleans(),
        **dict.fromkeys(
            ("reflection", "consolidation", "calls", "failures", "episodic", "total"), st.integers(3, 9)
        ),
    },
    ev.ThresholdsSet: {"reflection": st.none() | st.integers(3, 15)},
    ev.MetaForced: {"task": TASKS},
    ev.MetaVetoed: {"task": TASKS, "lifted": st.booleans()},
    ev.GuidanceGiven: {"text": TEXTS},
    ev.NoteAdded: {"text": TEXTS},
    ev.ControlTaken: {"holder": TEXTS},
    ev.ControlAsked: {"by": TEXTS, "holder": TEXTS},
    ev.ControlGiven: {"holder": TEXTS, "before": TEXTS},
    ev.ReplanAsked: {"goal": GOALS},
    ev.ResultDisputed: {"event": st.sampled_from(["a:1", "a:2"]), "lifted": st.booleans()},
    ev.StuckNoticed: {
        "signs": st.just(()) | st.just((Signal("repeated", free_text("x")),)),
        "holds": st.booleans(),
    },
}
PAYLOADS = st.one_of([st.builds(kind, **fields) for kind, fields in FIELDS.items()])


def _chained(payloads: list[ev.Payload]) -> list[Event]:
    events, head = [], GENESIS
    for version, payload in enumerate(payloads, 1):
        at = f"2026-01-01T00:00:{version:09.6f}Z"
        place = ("a", version, at, version // 3, "agent", (), payload.kind, payload.body())
        head = chain_hash(head, *place)
        events.append(Event(*place, head))
    return events


@given(st.lists(PAYLOADS, max_size=25), st.integers(0, 25))
def test_a_snapshot_and_the_rest_fold_to_what_all_events_do(payloads: list[ev.Payload], cut: int) -> None:
    events = _chained(payloads)
    whole = fold(events)
    half = fold(events[:cut])
    restored = load_state(dump_state(half))
    assert restored == half
    assert list(restored.goals) == list(half.goals)
    assert list(restored.beliefs) == list(half.beliefs)
    assert fold(events[cut:], restored) == whole


@given(st.lists(PAYLOADS, max_size=25))
def test_live_payloads_and_stored_ones_lead_to_the_same_state(payloads: list[ev.Payload]) -> None:
    events = _chained(payloads)
    live = AgentState()
    for event, payload in zip(events, payloads, strict=True):
        apply(live, event, payload)
    assert live == fold(events)


@given(st.lists(PAYLOADS, max_size=15), PAYLOADS)
def test_a_copy_does_not_move_with_its_original(payloads: list[ev.Payload], more: ev.Payload) -> None:
    events = _chained([*payloads, more])
    state = fold(events[:-1])
    copy = copy_state(state)
    apply(state, events[-1])
    assert copy == fold(events[:-1])


def test_another_call_in_place_of_a_step_runs_with_its_own_arguments_not_the_settled_ones() -> None:
    first = PlanStep("s1", "", tool="simple_coder", command="run")
    other = replace(first, args={"command": "python3 a.py"})
    events = _chained(
        [
            ev.GoalAdopted(goal="g1", text="run it"),
            ev.PlanAdopted(plan="p1", goal="g1", steps=(first,)),
            ev.ActionRequested(
                action="a1", step="s1", goal="g1", tool="simple_coder", command="run", args={}
            ),
            ev.ParametersProcessed(action="a1", args={"command": "python a.py"}, stages=()),
            ev.PlanRevised(plan="p1", goal="g1", change="python3 for python", steps=(other,)),
        ]
    )
    settled, revised = fold(events[:4]), fold(events)
    assert settled.as_settled(settled.plans["g1"].steps[0]).args == {"command": "python a.py"}
    assert revised.as_settled(revised.plans["g1"].steps[0]).args == {"command": "python3 a.py"}


def test_every_kind_of_event_is_generated_here() -> None:
    without_state = {"workspace.created", "session.opened", "session.closed", "sandbox.tier_accepted"}
    without_state |= {"sandbox.network_granted"}
    without_state |= {"workspace.budget_set", "mcp.trusted", "mcp.distrusted"}
    without_state |= {"journal.break_accepted", "journal.restored", "journal.redacted"}
    without_state |= {"journal.archived", "journal.unarchived", "access.used"}
    quiet = {"plan.generated", "action.held", "action.queued", "action.dropped", "command.refused"}
    quiet |= {"plan.replan_rejected", "model.said", "plan.thinking_failed", "meta.cancel_asked"}
    quiet |= {
        "belief.outweighed",
        "snapshot.failed",
        "job.output",
        "job.stop_asked",
        "shell.typed",
        "shell.resized",
        "shell.returned",
        "tool.offered",
        "reasoner.busy",
        "reasoner.cut",
    }
    generated = {kind.kind for kind in FIELDS}
    told = {name for name in ev.kinds() if not name.startswith(("memory.", "mastermind.", "crew."))}
    assert told - generated <= without_state | quiet


def test_an_event_that_does_not_fit_is_named() -> None:
    (event,) = _chained([ev.AgentPaused(reason="x")])
    strange = Event("a", 7, event.at, 1, "agent", (), "agent.levitated", "{}", "")
    with pytest.raises(JournalError, match=r"Event a:7 \(agent.levitated\) is of no known kind"):
        ev.payload_of(strange)
    wrong = Event("a", 8, event.at, 1, "agent", (), "agent.paused", '{"reason":3}', "")
    with pytest.raises(JournalError, match=r"Event a:8 .* does not fit its kind"):
        ev.payload_of(wrong)


@pytest.mark.only_in_a_file
async def test_states_are_restored_without_snapshots_too(flight: Flight) -> None:
    await flight.plan(act("write", path="a", content=""), act("write", path="b", content=""))
    await flight.do(cmd.Step)
    await flight.until(lambda s: s.actions == 1 and not s.acting)
    await flight.reopen()
    assert await flight.engine.store.load_snapshot("pilot", None, SNAPSHOT_FORMAT) is not None
    before = await flight.state()
    writer = flight.engine.store._writer
    assert writer is not None
    await writer.write([("delete from snapshots", ())])
    assert await flight.engine.view("pilot", before.version) == fold(
        (await flight.events())[: before.version]
    )
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)


@pytest.mark.only_in_a_file
async def test_what_an_opening_had_to_fold_is_kept_for_the_next_one(
    flight: Flight, monkeypatch: pytest.MonkeyPatch
) -> None:
    await flight.plan(*(act("write", path=f"{number}", content="") for number in range(5)))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    had = (await flight.state()).version
    await flight.engine.close()
    with closing(sqlite3.connect(flight.engine.store.path)) as journal, journal:
        journal.execute("delete from snapshots")  # as after a session that was killed
    monkeypatch.setattr("engine.api.engine.SNAPSHOT_EVERY", had)  # more than an opening adds by itself
    monkeypatch.setattr("engine.api.engine.SNAPSHOT_LEAST", had)
    await flight.open()
    async with asyncio.timeout(PATIENCE_S):
        while await flight.engine.store.load_snapshot("pilot", None, SNAPSHOT_FORMAT) is None:
            await asyncio.sleep(0.01)


async def test_a_view_of_the_past_is_the_fold_of_the_first_events(flight: Flight) -> None:
    await flight.plan(act("write", path="a", content=""))
    await flight.do(cmd.Run)
    await flight.until(lambda s: not s.open_goals)
    events = await flight.events()
    for version in range(1, len(events) + 1):
        assert await flight.engine.view("pilot", version) == fold(events[:version])
    with pytest.raises(KeyError):
        await flight.engine.view("nobody")
