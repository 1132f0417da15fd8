"""Whatever fails, in whatever order, however often: every run ends in a defined state, and replays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from engine_flight import QuickClock
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.agent.actions.snapshots import NoSaver
from engine.agent.agent import Agent
from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.api.replay import replay_stream
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, Survey, ToolResult
from engine.core.agents import AgentConfig
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import GENESIS, Event
from engine.core.plan import Op, PlanStep, Uncovered
from engine.core.ports import CallContext, Ports
from engine.core.recovery import ActiveAction, Strategy
from engine.core.state import AgentState
from engine.core.streams import StreamLog
from engine.core.thinking import (
    Decision,
    DecisionKind,
    DecisionRequest,
    PlanProposal,
    PlanRequest,
    ThinkingError,
)
from engine.models.errors import ModelError, ModelErrorKind, kind_of_model_error
from engine.sandbox.jobs import Sessions
from engine.tools.belief_tool import BeliefTool
from engine.tools.parameters.paths import LookupRequest
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder_commands import COMMANDS
from tests.patience import PATIENCE_S

TURNS = 200_000
"""Turns of the event loop that a run may take; a run that does not end takes any number."""
STARTS = 1 + 3 + 1
"""The first start of a step, its retries, and its alternative."""
DECISIONS = 20
"""Decisions after which a thinker that always finds something to do has had enough."""

Answer = ErrorCode | None
Thought = ModelErrorKind | tuple[PlanStep, ...] | str


class _Coder:
    id, description, commands = "simple_coder", "answers as it is told", COMMANDS


class _Fate:
    """What tools and the thinker answer: the given answers, over and over."""

    name, free = "claude", False

    def __init__(self, answers: Sequence[Answer], thoughts: Sequence[Thought]) -> None:
        self._answers, self._thoughts = list(answers), list(thoughts)
        self._decided = 0

    async def call(
        self, action: str, tool: str, command: str, args: Mapping[str, Any], context: CallContext
    ) -> ToolResult:
        await asyncio.sleep(0)
        code = self._answers[0]
        self._answers.append(self._answers.pop(0))
        status = ResultStatus.SUCCESS if code is None else ResultStatus.FAILURE
        return ToolResult(status, {"message": f"{command}: {code}"}, code)

    async def plan(self, request: PlanRequest) -> PlanProposal:
        await asyncio.sleep(0)
        thought = self._thoughts[0]
        self._thoughts.append(self._thoughts.pop(0))
        if isinstance(thought, ModelErrorKind):
            kind = kind_of_model_error(ModelError(thought, ""))
            raise ThinkingError(kind, f"no answer: {thought}", 2.0)
        if isinstance(thought, str):
            return PlanProposal((), (Uncovered(request.goal.text, 1, thought),), "scripted")
        return PlanProposal(thought, (), "scripted")

    async def decide(self, request: DecisionRequest) -> Decision:
        """A call of the next plan, or an end where it has none; it does not go on for ever."""
        self._decided += 1
        if self._decided > DECISIONS:
            return Decision(DecisionKind.FINISH, "enough")
        proposal = await self.plan(PlanRequest(request.goal))
        if proposal.uncovered:
            return Decision(DecisionKind.GIVE_UP, proposal.uncovered[0].why)
        step = next((step for step in proposal.steps if step.op is Op.ACT), None)
        if step is None:
            return Decision(DecisionKind.FINISH if proposal.steps else DecisionKind.THINK, "so be it")
        return Decision(DecisionKind.CALL, "", step.tool, step.command, step.args)

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: LookupRequest) -> Survey:
        return Survey()

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        return {}, session

    async def bytes_overwritten(self, *_args: Any) -> int:
        return 0


async def _blob(content: bytes) -> str:
    return "0" * 64


async def _no_blob(digest: str) -> bytes | None:
    return None


def _act(command: str, /, **args: Any) -> PlanStep:
    return PlanStep("1", command, tool="simple_coder", command=command, args=args)


CALLS = st.sampled_from(
    [
        _act("read", path="a"),
        _act("append", path="a", content="b"),
        _act("run", command="python a.py"),
        PlanStep("1", "think", op=Op.THINK),
        PlanStep("1", "below", op=Op.ACHIEVE, args={"goal": "something smaller"}),
    ]
)
PLANS = st.lists(CALLS, min_size=1, max_size=3).filter(
    lambda steps: sum(step.op is Op.ACHIEVE for step in steps) <= 1
)
THOUGHTS = st.lists(
    st.sampled_from(ModelErrorKind)
    | st.sampled_from(["nobody knows", "it cannot be done"])
    | PLANS.map(lambda steps: tuple(_numbered(steps)))
    | st.just(()),
    min_size=1,
    max_size=6,
)
ANSWERS = st.lists(st.none() | st.sampled_from(ErrorCode), min_size=1, max_size=8)


def _numbered(steps: Sequence[PlanStep]) -> list[PlanStep]:
    return [
        PlanStep(str(at), step.description, step.op, step.tool, step.command, step.args)
        for at, step in enumerate(steps, 1)
    ]


async def _run(fate: _Fate, thinker: str, ask: bool) -> tuple[AgentState, list[Event]]:
    """Let an agent pursue one goal until it rests; its state and its events."""
    journal: list[Event] = []

    async def keep(batch: Sequence[Event]) -> Sequence[Event]:
        journal.extend(batch)
        return batch

    clock = QuickClock()
    log = StreamLog("a", 0, GENESIS, clock, keep)
    config = AgentConfig(thinker=thinker)
    created = ev.AgentCreated(agent_id="a", agent_type="bdi_agent", config=config)
    state = fold([log.append(created, actor="operator:x", causes=(), tick=0)])
    around = AgentEnvironment(
        thinker=fate,
        toolbox=fate,
        saver=NoSaver(),
        perceiver=fate,
        registry=ToolRegistry([_Coder(), BeliefTool()]),  # type: ignore[list-item]
        clock=clock,
        put_blob=_blob,
        randomness=Ports().randomness,
        control=Sessions(),
    )
    agent = Agent(AgentRecorder(state, log), around)
    agent.open("one", 7)
    agent.start()
    agent.handle(cmd.AdoptGoal(agent="a", text="something"), "operator:x")
    agent.handle(cmd.Run(agent="a", ask=ask), "operator:x")
    for _ in range(TURNS):
        if agent.fault or state.intervention or not state.open_goals:
            break
        await asyncio.sleep(0)
    assert not agent.fault
    await agent.close()
    return state, journal


@settings(max_examples=80, deadline=None)
@given(ANSWERS, THOUGHTS, st.sampled_from(["procedural", "claude"]), st.booleans())
def test_any_failures_at_all_end_in_a_defined_state_after_bounded_attempts_and_replay(
    answers: list[Answer], thoughts: list[Thought], thinker: str, ask: bool
) -> None:
    async def scenario() -> None:
        state, journal = await _run(_Fate(answers, thoughts), thinker, ask)
        root = state.goals["g1"]
        if ask:
            assert root.status is GoalStatus.ACHIEVED or state.intervention is not None
        else:
            assert root.status in (GoalStatus.ACHIEVED, GoalStatus.FAILED)
            assert state.intervention is None
            assert not state.open_goals

        said = [ev.payload_of(event) for event in journal]
        requested = {each.action: each.step for each in said if isinstance(each, ev.ActionRequested)}
        starts = Counter(requested[each.action] for each in said if isinstance(each, ev.ActionStarted))
        assert max(starts.values(), default=0) <= STARTS
        chosen = [each for each in said if isinstance(each, ev.RecoveryChosen)]
        anew = Counter(each.goal for each in chosen if each.strategy is Strategy.SIMPLIFIED_APPROACH)
        assert max(anew.values(), default=0) <= 2
        assert all(each.attempt <= each.of for each in chosen)

        assert fold(journal) == state
        replay = await replay_stream(journal, _no_blob)
        assert replay.matches, replay.difference

    asyncio.run(scenario())


async def test_an_open_thought_whose_goal_is_to_be_planned_anew_decides_by_itself() -> None:
    fate = _Fate([None], [(PlanStep("1", "think", op=Op.THINK),), ModelErrorKind.NOT_FOUND, ()])
    async with asyncio.timeout(PATIENCE_S):
        state, _ = await _run(fate, "claude", ask=False)
    assert not state.open_goals
