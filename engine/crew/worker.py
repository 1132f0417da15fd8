"""Makes runs of handoffs: ordinary agents of the engine, each with its own stream, gate and budgets.

`Runs` is the worker of `engine.crew.ports`: it begins and ends runs by commands, as an operator would, and
follows their durable events to report to the manager. A run gets only the programs that its specification
allows.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from engine.agent.agent import Agent
from engine.agent.live_agents import LiveAgents
from engine.agent.steering.rules import rule_text
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import ACP, CREW, HANDOFF, PROGRESS, RETURNED, SPEC
from engine.core.approvals import Answer, Scope
from engine.core.goals import GoalStatus
from engine.core.journal import Event, JournalClosed
from engine.core.plan import Op
from engine.core.reasons import Reason
from engine.core.recovery import FailureKind, Intervention
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.text import clean_line
from engine.crew.members import NO_RESULT, action_text, member_config, member_goal, member_of, result_text
from engine.crew.ontology.criteria import Rubric, RubricVerdict, Subject
from engine.crew.ontology.kinds import ErrorCode
from engine.crew.ontology.results import Usage
from engine.crew.ontology.spec import NO_FUNCTIONS, AgentSpec
from engine.crew.ports import HandoffError, RunningHandoff, RunObserver
from engine.crew.thinker.model_calls import RUN
from engine.crew.thinker.spec_thinker import SpecThinker
from engine.sandbox.policy import SandboxPolicy
from engine.tools.belief_tool import BeliefTool


def narrowed_policy(spec: AgentSpec, policy: SandboxPolicy) -> dict[str, Any]:
    """The fields by which a run's policy is tightened: with `Bash(git:*)` alone, `run` runs git alone.

    What the workspace's own policy does not allow is never added.
    """
    named = [name for name in spec.tools.local if name.partition(" ")[0] == RUN]
    programs = {name.partition(" ")[2].strip() for name in named}
    if not named or "" in programs:
        return {}
    return {"programs": [name for name in policy.programs if name in programs]}


async def plug_in(crew: Any) -> None:
    """Have a crew's engine make its runs."""

    async def service() -> Any:
        return crew.service

    worker = crew.engine.set_run_service(
        service, permits=crew.permits, colleagues=crew.service, present=crew.attended
    )
    await worker.open(crew.service)
    crew.handoffs.moves.worker = worker


Submit = Callable[[cmd.Command], Awaitable[cmd.Receipt]]

ERRORS_MOST = 6
"""Failures in a row that a run may have: two repairs, and what may go wrong beside them."""
SETTINGS: dict[str, Any] = {
    # What a run costs is its task's alone, and what it knows is what it was told.
    "parameter_processing": {"use_llm_extraction": False},
    "metacognition": {"enabled": False},
    "stuck": "off",
    "recovery": {"max_consecutive_errors": ERRORS_MOST},
}
_CODES = {
    FailureKind.NETWORK_ERROR: ErrorCode.MODEL_NETWORK,
    FailureKind.RATE_LIMIT_ERROR: ErrorCode.RATE_LIMIT,
    FailureKind.PLANNING_ERROR: ErrorCode.OUTPUT_FORMAT,
    FailureKind.TOOL_UNAVAILABLE: ErrorCode.TOOL_UNAVAILABLE,
    FailureKind.CANCELLED: ErrorCode.CANCELLED,
}
_KINDS = frozenset(
    kind.kind
    for kind in (
        *(ev.GoalEnded, ev.InterventionOpened, ev.InterventionClosed, ev.ApprovalAsked, ev.ApprovalAnswered),
        *(ev.BreakpointHit, ev.BudgetReached, ev.BudgetEased, ev.AgentPaused, ev.AgentResumed),
        ev.RuleGranted,
    )
)


class Runs:
    """Makes runs of handoffs, and ends them.

    Args:
        live: the agents of this session.
        submit: carries commands out.
        store: the journal.
        present: whether an operator can be asked; else what would be asked is denied.
        policy: of the sandbox, which specifications narrow.
    """

    def __init__(
        self,
        live: LiveAgents,
        submit: Submit,
        store: JournalStore,
        *,
        present: bool = True,
        policy: SandboxPolicy | None = None,
    ) -> None:
        self._policy = policy
        self._live, self._submit, self._store = live, submit, store
        self._present = present
        self._watcher: RunObserver | None = None
        self._task: asyncio.Task[None] | None = None
        self._mine: set[str] = set()
        """Runs that are reported to the manager."""
        self._waits: set[str] = set()
        self._taken: set[str] = set()
        """Ids that are being given."""
        self._going: set[asyncio.Task[None]] = set()
        self._used: dict[str, Usage] = {}
        """What runs took that are gone."""

    @property
    def thinks(self) -> bool:
        """Whether there is a model for them."""
        return self._live.thinks

    # -------------------------------------------------------------- life

    async def open(self, watcher: RunObserver) -> None:
        """Begin to follow what runs do, from now on."""
        self._watcher = watcher
        since = await self._store.head_seq()
        self._task = asyncio.create_task(self._follow(since), name="runs of the crew")

    async def close(self) -> None:
        """Follow no longer; runs continue as agents of the engine do. May be called again."""
        task, self._task = self._task, None
        await asyncio.gather(*self._going, return_exceptions=True)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -------------------------------------------------------------- the worker

    async def begin(self, handoff: RunningHandoff, parent: str) -> str:
        """Begin the work on a handoff; see `engine.crew.ports.Worker`. Cancelled, it leaves nothing running.

        Raises:
            HandoffError: no agent can be made of it.
        """
        making = asyncio.ensure_future(self._begin(handoff, parent))
        try:
            run = await asyncio.shield(making)
        except asyncio.CancelledError:
            with suppress(HandoffError):
                await self.stop(await making, "cancelled before it began")
            raise
        # It comes back with what it wants, so its caller has the id first: nothing is awaited from here on.
        going = asyncio.create_task(self._go(run), name=f"run {run}")
        self._going.add(going)
        going.add_done_callback(self._going.discard)
        return run

    async def _go(self, run: str) -> None:
        """Let a new run begin to work."""
        for rule in await self._watcher.rules_of(run) if self._watcher is not None else ():
            await self._submit(cmd.GrantRule(agent=run, rule=rule, scope=Scope.ALWAYS.value))
        if run not in self._mine:
            return
        try:
            await self._do(cmd.Run(agent=run, ask=self._present))
        except HandoffError as error:
            await self.stop(run, error.message)
            if self._watcher is not None:
                await self._watcher.ended(run, ok=False, text=error.message, code=error.code)

    async def _begin(self, handoff: RunningHandoff, parent: str) -> str:
        spec, kind, goal = handoff.spec, handoff.spec.type.value, _goal_of(handoff)
        settings = SETTINGS
        if spec.done_by:
            member = member_of(spec, {name: agent.state for name, agent in self._live.here.items()})
            kind, goal = member.agent_type, member_goal(member, goal)
            settings = member_config(member, handoff)
        config: dict[str, Any] = {
            **settings,
            SPEC: spec.model_dump(mode="json"),
            HANDOFF: handoff.context.model_dump(mode="json"),
        }
        if handoff.progress:
            config[PROGRESS] = handoff.progress
        if spec.tools.custom_tools:
            raise HandoffError(ErrorCode.TOOL_UNAVAILABLE, NO_FUNCTIONS)
        if self._policy is not None and (narrower := narrowed_policy(spec, self._policy)):
            config["sandbox"] = {**config.get("sandbox", {}), **narrower}
        if parent in self._live.here:
            config["parent"] = parent
        run = await self._new_id(spec.id)
        try:
            about = clean_line(f"{spec.name}: {handoff.context.task_description}", limit=300)
            await self._do(cmd.CreateAgent(agent=run, agent_type=kind, description=about, config=config))
        finally:
            self._taken.discard(run)
        self._mine.add(run)
        try:
            await self._do(cmd.AdoptGoal(agent=run, text=goal))
        except HandoffError as error:
            await self.stop(run, error.message)
            raise
        return run

    async def resume(self, handoff: RunningHandoff) -> None:
        """Go on with a run of an earlier session, or one that was paused.

        Raises:
            HandoffError: it is not there any more.
        """
        agent = self._live.here.get(handoff.run)
        if agent is None or not agent.state.open_goals:
            why = self._live.faults.get(handoff.run, "its work is over")
            raise HandoffError(ErrorCode.INTERNAL, f"{handoff.run or 'its run'} cannot go on: {why}")
        self._mine.add(handoff.run)
        await self._do(cmd.Run(agent=handoff.run, ask=self._present))

    async def pause(self, run: str) -> None:
        """Hold a run where it stands: what it waits for keeps waiting, and nothing new begins."""
        if run in self._live.here:
            await self._submit(cmd.Pause(agent=run))

    async def recall(self, runs: Mapping[str, str]) -> Mapping[str, str]:
        """See `engine.crew.ports.Worker`; a run may have begun before the manager could say so."""
        for run in filter(None, runs.values()):
            if run not in self._live.here:
                self._used[run] = usage_of(await self._live.restore(run))
        begun = {}
        for run, agent in self._live.here.items():
            handed = agent.state.config.meta.get(HANDOFF)
            name = str(handed.get("handoff_id")) if isinstance(handed, Mapping) else ""
            if runs.get(name) == "":
                begun[name] = run
        return begun

    async def stop(self, run: str, reason: str) -> None:
        """End a run; when this returns nothing of it runs, and it is not resumed.

        Not to be awaited by an action of the run itself, which would wait for its own end.
        """
        self._mine.discard(run)
        self._waits.discard(run)
        agent = self._live.here.get(run)
        if agent is None:
            return
        if agent.state.open_goals or agent.state.acting or agent.state.running_jobs:
            await self._submit(cmd.Stop(agent=run, grade="kill", reason=clean_line(reason, limit=300)))
            await agent.pipeline.rests.wait()
            if agent.around.model is not None:
                await agent.around.model.quiet.wait()
            cut = Reason("end.cut", why=clean_line(reason, limit=300))
            for goal in [goal for goal in agent.state.open_goals if goal.parent is None]:
                await self._submit(cmd.DropGoal(agent=run, goal=goal.id, reason=cut))

    async def judge(
        self, run: str, rubrics: Sequence[Rubric], subject: Subject
    ) -> Mapping[Rubric, RubricVerdict]:
        """See `engine.crew.ports.Worker`."""
        agent = self._live.here.get(run)
        if agent is None or not isinstance(agent.around.thinker, SpecThinker):
            return {}
        return await agent.around.thinker.judged(rubrics, subject)

    async def log(self, run: str) -> frozenset[str]:
        """See `engine.crew.ports.Worker`; what counts is on record, so that it is read there."""
        asked: set[str] = set()
        names: set[str] = set()
        async for event in self._store.events(stream=run):
            if event.kind in (ev.ActionRequested.kind, ev.ActionFinished.kind):
                match ev.payload_of(event):
                    case ev.ActionRequested() as requested if finds(requested.tool, requested.command):
                        asked.add(requested.action)
                    case ev.ActionFinished(code=None) as ended if ended.action in asked:
                        names.add(ended.action)
        return frozenset(names)

    def works_on(self, run: str) -> bool:
        """Whether something is still expected of a run; else what it took is remembered here."""
        if run in self._mine or run in self._taken:
            return True
        self.usage(run)
        return False

    def usage(self, run: str) -> Usage:
        """What a run has taken of models so far."""
        agent = self._live.here.get(run)
        if agent is not None:
            self._used[run] = usage_of(agent.state)
        return self._used.get(run, Usage())

    def trouble(self, run: str) -> str:
        """See `engine.crew.ports.Worker`."""
        agent = self._live.here.get(run)
        failures = agent.state.failures if agent is not None else []
        return clean_line(failures[-1].message, limit=300) if failures else ""

    def streamed(self, run: str) -> str:
        """The text that the run's model has said last: in words, or as the output of a call."""
        agent = self._live.here.get(run)
        if agent is None:
            return ""
        if agent.state.reasons:
            return result_text(agent.state)
        if said := getattr(agent.around.thinker, "said", ""):
            return str(said)
        if agent.around.model_stream is None:
            return ""
        last = agent.around.model_stream.last
        return last.get("text", "").strip() or _output_in(last.get("tool input", ""))

    # -------------------------------------------------------------- beginning

    async def _new_id(self, spec_id: str) -> str:
        """An id for a run that no agent has or had: the specification's, with a number."""
        base = spec_id if spec_id[0].isalpha() else f"a-{spec_id}"
        there = {*await self._store.streams(), *self._taken}
        number = 1
        while (run := f"{base[: 31 - len(str(number))].rstrip('-')}-{number}") in there:
            number += 1
        self._taken.add(run)
        return run

    async def _do(self, command: cmd.Command) -> None:
        receipt = await self._submit(command)
        if not receipt.ok:
            code = ErrorCode.BUDGET if "budget" in receipt.message else ErrorCode.BAD_CONTEXT
            raise HandoffError(code, receipt.message)

    # -------------------------------------------------------------- what runs do

    async def _follow(self, since: int) -> None:
        with suppress(JournalClosed):
            async for event in self._store.events(since, follow=True):
                if event.stream in self._mine and event.kind in _KINDS:
                    await self._note(event)

    async def _note(self, event: Event) -> None:
        agent = self._live.here.get(event.stream)
        if agent is None or self._watcher is None:
            return
        payload = ev.payload_of(event)
        if isinstance(payload, ev.GoalEnded):
            goal = agent.state.goals.get(payload.goal)
            if goal is not None and goal.parent is None:
                await self._ended(agent, ok=payload.status is GoalStatus.ACHIEVED, reason=payload.reason)
            return
        if isinstance(payload, ev.RuleGranted):
            if payload.scope is Scope.ALWAYS and payload.rule.answer is Answer.ALLOW:
                await self._watcher.allowed(event.stream, rule_text(payload.rule))
            return
        if isinstance(payload, ev.InterventionOpened) and _of_thought(agent.state, agent.state.intervention):
            await self.stop(event.stream, payload.reason)
            await self._ended(agent, ok=False, reason=payload.reason)
            return
        await self._tell_waiting(agent)

    async def _ended(self, agent: Agent, *, ok: bool, reason: str) -> None:
        run, state = agent.state.agent_id, agent.state
        self._mine.discard(run)
        self._waits.discard(run)
        if RETURNED in state.beliefs or self._watcher is None:
            return
        code = None
        if not ok:
            kind = state.failures[-1].kind if state.failures else FailureKind.UNKNOWN_ERROR
            code = _CODES.get(kind, ErrorCode.INTERNAL)
        text = self.streamed(run) if ok else reason
        if ok and agent.state.reasons and not text:
            ok, text = False, NO_RESULT
        if ok and not text and (last := await self._store.last(1, run, kind=ev.ActionFinished.kind)):
            text = action_text(last[0])
        if agent.state.config.thinker == ACP:
            await self.stop(run, "its work is over")  # the program waits for another turn
        await self._watcher.ended(run, ok=ok, text=text or reason, code=code)

    async def _tell_waiting(self, agent: Agent) -> None:
        """Tell the manager when the engine waits for the operator about a run, and when no longer."""
        assert self._watcher is not None
        run, why = agent.state.agent_id, waiting_for(agent.state)
        if why and run not in self._waits:
            self._waits.add(run)
            await self._watcher.wait_began(run, why)
        elif not why and run in self._waits:
            self._waits.discard(run)
            await self._watcher.wait_ended(run)


def finds(tool: str, command: str) -> bool:
    """Whether a call can find something: of the crew's own, what others and the operator are asked."""
    return command in ("delegate", "escalate") if tool == CREW else tool != BeliefTool.id


def usage_of(state: AgentState) -> Usage:
    """What an agent has taken of models, as its state says."""
    return Usage(
        calls=state.model_calls,
        input_tokens=max(0, state.tokens - state.output_tokens),
        output_tokens=state.output_tokens,
        usd=state.cost_usd,
    )


def waiting_for(state: AgentState) -> str:
    """What an agent waits for the operator about; empty when it does not."""
    if state.intervention is not None:
        return clean_line(state.intervention.reason, limit=300)
    if state.approvals.question is not None:
        action = state.action
        return f"may it {action.tool} {action.command}?" if action is not None else "an approval"
    if state.held_by is not None:
        return clean_line(state.run_reason, limit=300)
    return f"a breakpoint: {state.run_reason}" if state.breakpoint_hit else ""


def _of_thought(state: AgentState, opened: Intervention | None) -> bool:
    """Whether what failed was a model's thinking, which the manager tries again and not the operator."""
    if opened is None or not opened.kind:
        return False
    step = state.find_step(opened.step)
    return step is None or step[1].op is Op.THINK


def _goal_of(handoff: RunningHandoff) -> str:
    """The goal's text; the whole task stands in the configuration."""
    text = handoff.context.task_description.strip() or f"talk with the operator as {handoff.spec.name}"
    return text if len(text) <= cmd.GOAL_LIMIT else f"{text[: cmd.GOAL_LIMIT - 1]}…"


_OUTPUT = re.compile(r'"(?:output|text)"\s*:\s*"((?:[^"\\]|\\.)*)')


def _output_in(given: str) -> str:
    """The output, or as much of it as has come, of a call's input that may be cut off."""
    match_ = _OUTPUT.search(given)
    if match_ is None:
        return ""
    text = match_.group(1)
    with suppress(ValueError):
        return str(json.loads(f'"{text}"'))
    return text
