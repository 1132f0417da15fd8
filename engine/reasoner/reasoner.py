"""The reasoner of one agent: brought forward by the events of its stream, and by nothing else.

What comes in (goals, beliefs, percepts, ends of actions, messages, plans) is an event before it gets here;
how far it goes on is recorded, and as it is deterministic so is what it did. So a reasoner can be had again
from the stream alone: `remember` shows it every event, and runs as many phases as `reasoner.advanced` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from engine.bdi import viewing
from engine.bdi.agent import BdiAgent
from engine.bdi.beliefs import is_source
from engine.bdi.cycle import Phase
from engine.bdi.messages import Message
from engine.bdi.parser import parse_program
from engine.bdi.printing import text_of
from engine.bdi.syntax import Program
from engine.bdi.terms import Struct
from engine.bdi.views import IntentionView
from engine.bdi.waiting import ActionRequest
from engine.domain.reasoning import HeldBelief, MindState, SentMessage, UnhandledFailure, WantedAction
from engine.generation.pgp.documentation import documentation_of
from engine.journal import events as ev
from engine.journal.event import Event
from engine.reasoner.actions import ActionError, ActionTable
from engine.reasoner.breakpoints import Watch
from engine.reasoner.config import LIMITS, ReasonerConfig
from engine.reasoner.inputs import INPUTS
from engine.reasoner.making import PlanMaking
from engine.reasoner.run import FAILURES_LIMIT, Run, as_json, clipped, failure_of, in_brief, outcomes
from engine.reasoner.strides import Strides

INTENTIONS_SHOWN = 200
"""Intentions that the journal shows at a time, the oldest."""


class ForgottenError(Exception):
    """A mind cannot be had again from its events; the message says where."""


class Reasoner:
    """A BDI agent between the events of a stream.

    Args:
        name: the agent's id.
        config: its program and settings.
        actions: what the program can do.
        created: when the agent was created, ISO 8601; logical time counts from then.
    """

    def __init__(self, name: str, config: ReasonerConfig, actions: ActionTable, created: str) -> None:
        self.config = config
        self.actions = actions
        self.run: Run | None = None
        """What has been done since the last event."""
        program = parse_program(config.program, config.source)
        own = program.goals if config.own_goals else ()
        self.goals = tuple(f"{goal.kind}{text_of(goal.literal)}" for goal in own)
        """The program's own, as they are written: `!reach(home)`."""
        self.created = _milliseconds(created)
        """Milliseconds since 1970 at time 0 of the reasoner."""
        self.now = 0.0
        self.at = created
        self.tracing = config.tracing
        self.requests: dict[str, int] = {}
        """Numbers of the requests that actions under way answer, by action."""
        self.tags: dict[int, str] = {}
        """The operator's goals that intentions pursue."""
        self.watch = Watch()
        self.visible: set[int] = set()
        """Intentions that the journal shows."""
        self.held: set[Struct] = set()
        """Beliefs that the journal shows."""
        self.facts: dict[str, Any] = {}
        self.world: tuple[Struct, ...] = ()
        self.agent = self._agent(name, program)
        self.strides = Strides(self.agent)
        self.making = PlanMaking(self.agent, config.generation, documentation_of(program.docs), actions)

    def _agent(self, name: str, program: Program) -> BdiAgent:
        agent = BdiAgent(
            name,
            replace(program, goals=()),
            semantics=self.config.rules,
            limits=LIMITS,
            actions=self.actions.arities,
            say=self._say,
            random=Random(self.config.seed),
        )
        agent.tracer = self._note
        agent.epoch = self.created
        agent.beliefs.touched = dict.fromkeys(fact.plain for fact in agent.beliefs)
        return agent

    def _say(self, text: str) -> None:
        if self.run is not None:
            self.run.say(text)

    def _note(self, record: Any) -> None:
        run = self.run
        if run is None:
            run = self.run = Run(traced=self.tracing)
        run.note(record)
        if reached := self.watch.reached((record,)):
            run.reach(reached)
        intention = getattr(record, "intention", 0)
        known = self.agent.intentions.get(intention) if intention else None
        if known is not None and known.tag:
            self.tags[intention] = known.tag

    # ------------------------------------------------------------------ what comes in

    def take(self, event: Event, payload: ev.Payload) -> None:
        """Bring in an event of the stream, in the order of the stream."""
        handler = INPUTS.get(type(payload))
        if handler is not None:
            self.at = event.at
            # As stored, not the payload at hand: the order of its keys may differ, and matters.
            handler(self, ev.payload_of(event))
        self.now = max(self.now, _milliseconds(event.at) - self.created)

    def remember(self, event: Event, payload: ev.Payload) -> None:
        """Bring in a recorded event, and do again what the reasoner did then.

        Raises:
            ForgottenError: it cannot be done again as it was.
        """
        try:
            if isinstance(payload, ev.ReasonerAdvanced):
                self._do_again(payload)
            self.take(event, payload)
        except Exception as error:
            raise ForgottenError(f"{event.ref} cannot be done again: {error}") from error

    def _do_again(self, said: ev.ReasonerAdvanced) -> None:
        run = Run()
        self.advance(run, lambda done: done < said.phases)
        run.open = False
        self.close()
        came = self.agent.cycles, run.phases, run.steps, len(self.agent.beliefs)
        recorded = said.mind.cycles, said.phases, said.steps, said.mind.beliefs
        if came != recorded:
            raise ValueError(f"cycles, phases, steps and beliefs are {came}, recorded were {recorded}")

    # ------------------------------------------------------------------ going on

    def advance(self, run: Run, goes_on: Callable[[int], bool]) -> None:
        """Run phases until something has happened that others must see, or it is enough for now.

        Args:
            run: what has been done since the last event; one that is closed is not gone on with.
            goes_on: whether there may be another phase, given how many there were.
        """
        if self.run is not None and self.run is not run:
            run.join(self.run)
        self.run = run
        run.traced = self.tracing
        self.strides.by_step = run.stride is not None and run.stride.scope == "step"
        if run.poise and not run.phases and self.poised:
            run.open = False
        try:
            while run.open and goes_on(run.phases):
                self._phase(run)
        except BaseException:
            # What half a phase has done is nothing that could be done again.
            self.run = None
            raise

    @property
    def poised(self) -> bool:
        """Whether it stands right before a body step."""
        return self.agent.phase is Phase.ACT and viewing.pending_step(self.agent) is not None

    def _phase(self, run: Run) -> None:
        agent, steps = self.agent, run.steps
        report = agent.advance(self.now)
        run.phases += 1
        for request in report.requests:
            self._request(run, request)
        run.messages += report.messages
        if run.stride is not None and run.steps > steps:
            self.strides.taken += run.stride.intention in (0, run.stepped)
        over = bool(run.wanted or run.reached) or run.full
        over = over or any(one.intention in self.tags for one in run.ended)
        over = over or (run.steps_left is not None and run.steps >= run.steps_left)
        if agent.phase is Phase.SENSE and agent.idle:
            over = True
            run.stride_over = run.stride is not None and not run.wanted and self.strides.at_rest(run.stride)
        elif self.poised:
            run.stride_over = run.stride is not None and not run.wanted and self.strides.arrived(run.stride)
            over = over or run.stride_over or run.poise
        run.open = not over

    def _request(self, run: Run, request: ActionRequest) -> None:
        try:
            tool, command, args = self.actions.call(request.action)
        except ActionError as error:
            self.agent.feedback(request.number, False, str(error))
            return
        frame = self.agent.intentions[request.intention].frames[-1]
        text = clipped(text_of(request.action))
        run.wanted.append(
            WantedAction(request.number, text, tool, command, args, request.intention, frame.plan.name)
        )

    def close(self, open_goals: Iterable[str] = ()) -> tuple[ev.Payload, ...]:
        """What was done since the last event, for the journal: how far it went on, and what follows.

        Args:
            open_goals: ids of the operator's goals that were pursued before.
        """
        run = self.run
        if run is None or (run.open and not run.phases):
            return ()
        self.run = None
        if run.stride_over:
            self.strides.taken = 0
        follows = (
            *(failure_of(one, self.tags.get(one.intention, "")) for one in self._worth_noting(run)),
            *outcomes(run, self.tags, open_goals, self.agent.tags()),
            *self.making.new(),
            *(ev.MindBreakpointHit(breakpoint=one.breakpoint, what=one.what) for one in run.reached),
        )
        advanced = self._advanced(run)
        ended = {one.intention for one in run.ended}
        self.tags = {one: tag for one, tag in self.tags.items() if one not in ended}
        return (advanced, *follows)

    def _worth_noting(self, run: Run) -> list[UnhandledFailure]:
        """The failures that no plan caught: those of the operator's goals, and the first of the others."""
        few = run.failures[:FAILURES_LIMIT]
        return few + [one for one in run.failures[FAILURES_LIMIT:] if one.intention in self.tags]

    def _intentions(self, run: Run) -> tuple[IntentionView, ...]:
        """Intentions that are shown and have changed, and those for which there is room now."""
        known = self.agent.intentions
        shown = self.visible & run.touched & known.keys()
        room = INTENTIONS_SHOWN - len(self.visible & known.keys())
        new = [one for one in known if one not in self.visible][:room] if room > 0 else []
        self.visible |= set(new)
        changed = sorted(shown.union(new))
        return tuple(in_brief(viewing.in_short(viewing.intention_view(known[one]))) for one in changed)

    def _advanced(self, run: Run) -> ev.ReasonerAdvanced:
        believed, forgotten = self._beliefs()
        intentions = self._intentions(run)
        ended = tuple(one for one in run.ended if one.intention in self.visible)
        self.visible.difference_update(one.intention for one in ended)
        failures = self._worth_noting(run)
        return ev.ReasonerAdvanced(
            phases=run.phases,
            steps=run.steps,
            mind=self.state(),
            intentions=intentions,
            ended=ended,
            believed=believed,
            forgotten=forgotten,
            wanted=tuple(run.wanted),
            sent=tuple(map(_sent, run.messages)),
            said=tuple(run.said),
            unsaid=run.unsaid,
            failures=tuple(failures),
            failures_left_out=len(run.failures) - len(failures),
            generated=self.making.news(),
            stride_over=run.stride_over,
            trace=tuple(map(as_json, run.records)) if self.tracing else (),
        )

    def state(self) -> MindState:
        """How it stands now."""
        agent = self.agent
        pending = viewing.pending_step(agent)
        return MindState(
            cycles=agent.cycles,
            pending=pending,
            poised=self.poised,
            idle=agent.phase is Phase.SENSE and agent.idle,
            due_ms=agent.next_timer,
            now_ms=self.now,
            events=len(agent.events),
            beliefs=len(agent.beliefs),
            intentions=len(agent.intentions),
            plans=len(list(agent.plans)),
        )

    def _beliefs(self) -> tuple[tuple[HeldBelief, ...], tuple[str, ...]]:
        """What has changed of the beliefs: those that are held now, and the texts of those that are not."""
        beliefs = self.agent.beliefs
        touched, beliefs.touched = beliefs.touched or {}, {}
        believed: list[HeldBelief] = []
        forgotten: list[str] = []
        for plain in touched:
            fact = beliefs.find(plain)
            if fact is None:
                if plain in self.held:
                    self.held.discard(plain)
                    forgotten.append(clipped(text_of(plain)))
                continue
            self.held.add(plain)
            sources = tuple(
                text_of(one.args[0]) for one in fact.annotations if isinstance(one, Struct) and is_source(one)
            )
            notes = tuple(text_of(one) for one in fact.annotations if not is_source(one))
            believed.append(HeldBelief(clipped(text_of(plain)), sources, tuple(map(clipped, notes))))
        return tuple(believed), tuple(forgotten)


def _sent(message: Message) -> SentMessage:
    content = text_of(message.content)
    return SentMessage(message.receiver, message.performative.value, content, message.number, message.answers)


def _milliseconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() * 1000 if at else 0.0
