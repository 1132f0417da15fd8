"""The reasoner of one agent: brought forward by the events of its stream, and by nothing else.

What comes in (goals, beliefs, percepts, ends of actions, messages, plans) is an event before it gets here;
how far it continues is recorded, and as it is deterministic so is what it did. So a reasoner can be had again
from the stream alone: `remember` shows it every event, and runs as many phases as `reasoner.advanced` says.

What the events of a stream bring to a reasoner, each kind by a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from engine.agent.reasoner.actions import (
    LIMITS,
    ActionError,
    ActionTable,
    ReasonerConfig,
    answered,
    facts_of,
    percepts_of,
    plain,
    read_goal,
)
from engine.agent.reasoner.plan_generation import GenerationRecords
from engine.agent.reasoner.run import (
    FAILURES_LIMIT,
    BreakpointWatch,
    ReasonerRun,
    StrideTracker,
    as_json,
    clipped,
    failure_of,
    in_brief,
    outcomes,
)
from engine.bdi import control
from engine.bdi.agent import BdiAgent
from engine.bdi.belief_revision import BeliefChange, announce, believe
from engine.bdi.beliefs import is_source
from engine.bdi.errors import ErrorId, EvaluationError, ProgramError
from engine.bdi.intentions import ActionRequest, Message, Performative, Phase
from engine.bdi.parser import parse_literal, parse_program, parse_term
from engine.bdi.printer import shown_text, text_of
from engine.bdi.rewriting import canonical
from engine.bdi.syntax import Program
from engine.bdi.terms import Struct, atom
from engine.bdi.trace import IntentionView
from engine.core import events as ev
from engine.core.journal import Event
from engine.core.reasoner import (
    REQUEST,
    ForgottenError,
    HeldBelief,
    MindBreakpoint,
    MindState,
    SentMessage,
    UnhandledFailure,
    WantedAction,
)
from engine.planning.pgp.documentation import documentation_of
from engine.value import fields_of

OPERATOR = Struct("source", (atom("operator"),))


def _goal_adopted(mind: Reasoner, event: ev.GoalAdopted) -> None:
    sign, literal = read_goal(event.text)
    # Where too many events wait the goal is not pursued, and so ends with the next look at it.
    with suppress(EvaluationError):
        mind.agent.achieve(literal, sign=sign, tag=event.goal)


def _goal_ended(mind: Reasoner, payload: ev.GoalEnded) -> None:
    for intention in list(mind.agent.intentions.values()):
        if intention.tag == payload.goal:
            mind.agent.drop(intention.id, payload.reason or "its goal was given up")
    for event in [goal_event for goal_event in mind.agent.events if goal_event.tag == payload.goal]:
        mind.agent.events.remove(event)


def _told(mind: Reasoner, event: ev.BeliefTold) -> None:
    literal = parse_literal(event.literal)
    if event.removed:
        fact = mind.agent.beliefs.find(plain(literal))
        if fact is not None:
            mind.agent.beliefs.drop(fact)
            _announce(mind, BeliefChange("-", fact.plain, fact.annotations))
        return
    if not any(map(is_source, literal.annotations)):
        literal = literal.with_annotations((*literal.annotations, OPERATOR))
    with suppress(EvaluationError):
        change = believe(mind.agent, literal)
        if change is not None:
            _announce(mind, change)


def _announce(mind: Reasoner, change: BeliefChange) -> None:
    """Raise the event of a change that came from outside; too many that wait leave it out."""
    with suppress(EvaluationError):
        announce(mind.agent, change)


def _perceived(mind: Reasoner, event: ev.WorldPerceived) -> None:
    mind.facts |= event.facts
    if event.world is not None:
        mind.world = percepts_of(event.world)
    _look(mind)


def _believe(mind: Reasoner, key: str, value: Any) -> None:
    mind.facts[key] = value
    _look(mind)


def _look(mind: Reasoner) -> None:
    mind.agent.perceive((*mind.world, *facts_of(mind.facts)))


def _requested(mind: Reasoner, event: ev.ActionRequested) -> None:
    if event.step.startswith(REQUEST):
        mind.requests[event.action] = int(event.step[len(REQUEST) :])


def _started(mind: Reasoner, event: ev.ActionStarted) -> None:
    if mind.strides.by_step and event.action in mind.requests:
        mind.strides.taken = 0


def _finished(mind: Reasoner, event: ev.ActionFinished) -> None:
    number = mind.requests.pop(event.action, None)
    if event.world is not None:
        mind.world = percepts_of(event.world)
        _look(mind)
    intention = mind.agent.pending.get(number) if number is not None else None
    if number is None or intention is None or intention.pending is None:
        return
    action = canonical(intention.pending.what)
    assert isinstance(action, Struct)
    reason = "" if event.code is None else str(event.result.get("message") or event.summary or event.code)
    mind.agent.feedback(number, event.code is None, reason, answered(action, event.result))


def _unknown(mind: Reasoner, event: ev.ActionOutcomeUnknown) -> None:
    number = mind.requests.pop(event.action, None)
    if number is not None:
        mind.agent.feedback(number, False, "the program ended while it ran; its outcome is unknown")


def _heard(mind: Reasoner, event: ev.MessageHeard) -> None:
    try:
        content = parse_term(event.content)
    except ProgramError:
        return
    kind = Performative(event.performative)
    mind.agent.receive(Message(event.sender, mind.agent.name, kind, content, event.number, event.answers))


def _steered(mind: Reasoner, event: ev.IntentionSteered) -> None:
    if event.intention not in mind.agent.intentions:
        return
    match event.how:
        case "suspend":
            mind.agent.suspend(event.intention, event.reason)
        case "resume":
            # Not `agent.resume`, which takes it that a plan was made for an intention that waits for one.
            control.resume(mind.agent, mind.agent.intentions[event.intention])
        case "drop":
            mind.agent.drop(event.intention, event.reason)
        case "fail":
            mind.agent.fail(event.intention, ErrorId.INTERNAL_ACTION_FAILED, event.reason)


def _break_changed(mind: Reasoner, event: ev.MindBreakpointChanged) -> None:
    point = MindBreakpoint(event.breakpoint, event.on, event.pattern, event.enabled)
    mind.watch.change(point, cleared=event.cleared)


CHANGED_LIMIT = 400
"""Beliefs that changed after which a run ends, so that recording it does not hold the event loop for long."""
INTENTIONS_SHOWN = 200
"""Intentions that the journal shows at a time, the oldest."""


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
        self.run: ReasonerRun | None = None
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
        self.watch = BreakpointWatch()
        self.visible: set[int] = set()
        """Intentions that the journal shows."""
        self.held: set[Struct] = set()
        """Beliefs that the journal shows."""
        self.facts: dict[str, Any] = {}
        self.world: tuple[Struct, ...] = ()
        self.version = 0
        """The newest event of the stream that was brought in."""
        self.late: list[tuple[Event, ev.Payload]] | None = None
        """What came while a part of its cycle was under way; None where none is."""
        self.agent = self._agent(name, program)
        self.strides = StrideTracker(self.agent)
        self.making = GenerationRecords(
            self.agent, config.generation, documentation_of(program.docs), actions
        )

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
            run = self.run = ReasonerRun(traced=self.tracing)
        run.note(record)
        if reached := self.watch.reached((record,)):
            run.reach(reached)
        intention = getattr(record, "intention", 0)
        known = self.agent.intentions.get(intention) if intention else None
        if known is not None and known.tag:
            self.tags[intention] = known.tag

    # ------------------------------------------------------------------ what comes in

    def take(self, event: Event, payload: ev.Payload) -> None:
        """Bring in an event of the stream, in the order of the stream.

        What comes while a part of the cycle is under way waits for its end.
        """
        self.version = event.version
        ends = isinstance(payload, ev.ReasonerAdvanced | ev.ReasonerCut | ev.AgentOpened)
        if self.late is not None and not ends:
            self.late.append((event, payload))
        elif isinstance(payload, ev.ReasonerBusy):
            self.late = []
        else:
            self._bring_in(event, payload)
            late, self.late = self.late, None
            for waiting in late or ():
                self._bring_in(*waiting)

    def _bring_in(self, event: Event, payload: ev.Payload) -> None:
        handler = INPUTS.get(type(payload))
        if handler is not None:
            self.at = event.at
            # As stored, not the payload at hand: the order of its keys may differ, and matters. Of how far it
            # went on itself, which may be long, it takes no keys.
            large = isinstance(payload, ev.ReasonerAdvanced)
            handler(self, payload if large else ev.payload_of(event))
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

    def _do_again(self, event: ev.ReasonerAdvanced) -> None:
        run = ReasonerRun()
        self.advance(run, lambda done: done < event.phases)
        run.open = False
        self.close()
        came = self.agent.cycles, run.phases, run.steps, len(self.agent.beliefs)
        recorded = event.mind.cycles, event.phases, event.steps, event.mind.beliefs
        if came != recorded:
            raise ValueError(f"cycles, phases, steps and beliefs are {came}, recorded were {recorded}")

    # ------------------------------------------------------------------ going on

    def advance(self, run: ReasonerRun, goes_on: Callable[[int], bool]) -> None:
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
    def laden(self) -> bool:
        """True when so many beliefs have changed that to record them takes a while."""
        return len(self.agent.beliefs.touched or ()) >= CHANGED_LIMIT

    @property
    def poised(self) -> bool:
        """Whether it stands right before a body step."""
        return self.agent.phase is Phase.ACT and control.next_to_run(self.agent) is not None

    def _phase(self, run: ReasonerRun) -> None:
        agent, steps = self.agent, run.steps
        report = agent.advance(self.now)
        run.phases += 1
        for request in report.requests:
            self._request(run, request)
        run.messages += report.messages
        if run.stride is not None and run.steps > steps:
            self.strides.taken += run.stride.intention in (0, run.stepped)
        over = bool(run.wanted or run.reached) or run.full
        over = over or any(end.intention in self.tags for end in run.ended)
        over = over or (run.steps_left is not None and run.steps >= run.steps_left)
        if agent.phase is Phase.SENSE and agent.idle:
            over = True
            run.stride_over = run.stride is not None and not run.wanted and self.strides.at_rest(run.stride)
        elif self.poised:
            run.stride_over = run.stride is not None and not run.wanted and self.strides.arrived(run.stride)
            over = over or run.stride_over or run.poise
        run.open = not over

    def _request(self, run: ReasonerRun, request: ActionRequest) -> None:
        try:
            tool, command, args = self.actions.call(request.action)
        except ActionError as error:
            self.agent.feedback(request.number, False, str(error))
            return
        frame = self.agent.intentions[request.intention].frames[-1]
        text = clipped(shown_text(request.action))
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
        failures = self._worth_noting(run)
        follows = (
            *(failure_of(failure, self.tags.get(failure.intention, "")) for failure in failures),
            *outcomes(run, self.tags, self._known_goals(open_goals), self.agent.tags()),
            *self.making.new(),
            *(ev.MindBreakpointHit(breakpoint=hit.breakpoint, what=hit.what) for hit in run.reached),
        )
        advanced = self._advanced(run)
        ended = {end.intention for end in run.ended}
        self.tags = {intention: tag for intention, tag in self.tags.items() if intention not in ended}
        return (advanced, *follows)

    def _worth_noting(self, run: ReasonerRun) -> list[UnhandledFailure]:
        """The failures that no plan caught: those of the operator's goals, and the first of the others."""
        few = run.failures[:FAILURES_LIMIT]
        return few + [failure for failure in run.failures[FAILURES_LIMIT:] if failure.intention in self.tags]

    def _intentions(self, run: ReasonerRun) -> tuple[IntentionView, ...]:
        """Intentions that are shown and have changed, and those for which there is room now."""
        known = self.agent.intentions
        shown = self.visible & run.touched & known.keys()
        room = INTENTIONS_SHOWN - len(self.visible & known.keys())
        new = [ident for ident in known if ident not in self.visible][:room] if room > 0 else []
        self.visible |= set(new)
        changed = sorted(shown.union(new))
        return tuple(in_brief(control.abridged(control.intention_view(known[ident]))) for ident in changed)

    def _advanced(self, run: ReasonerRun) -> ev.ReasonerAdvanced:
        believed, forgotten = self._beliefs()
        intentions = self._intentions(run)
        ended = tuple(end for end in run.ended if end.intention in self.visible)
        self.visible.difference_update(end.intention for end in ended)
        failures = self._worth_noting(run)
        return ev.ReasonerAdvanced(
            **fields_of(run, "phases", "steps", "unsaid", "stride_over"),
            mind=self.state(),
            intentions=intentions,
            ended=ended,
            believed=believed,
            forgotten=forgotten,
            wanted=tuple(run.wanted),
            sent=tuple(map(_sent, run.messages)),
            said=tuple(run.said),
            failures=tuple(failures),
            failures_left_out=len(run.failures) - len(failures),
            generated=self.making.news(),
            trace=tuple(map(as_json, run.records)) if self.tracing else (),
        )

    def _known_goals(self, goals: Iterable[str]) -> list[str]:
        """Goals without those that came while a part of the cycle was under way and are not adopted yet."""
        late = {payload.goal for _, payload in self.late or () if isinstance(payload, ev.GoalAdopted)}
        return [goal for goal in goals if goal not in late]

    def state(self) -> MindState:
        """How it stands now."""
        agent = self.agent
        pending = control.pending_step(agent)
        return MindState(
            cycles=agent.cycles,
            pending=pending,
            poised=self.poised and not self.late,
            idle=agent.phase is Phase.SENSE and agent.idle and not self.late,
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
        for literal in touched:
            fact = beliefs.find(literal)
            if fact is None:
                if literal in self.held:
                    self.held.discard(literal)
                    forgotten.append(clipped(shown_text(literal)))
                continue
            self.held.add(literal)
            named = [note for note in fact.annotations if isinstance(note, Struct) and is_source(note)]
            sources = tuple(shown_text(note.args[0]) for note in named)
            notes = tuple(clipped(shown_text(note)) for note in fact.annotations if not is_source(note))
            believed.append(HeldBelief(clipped(shown_text(literal)), sources, notes))
        return tuple(believed), tuple(forgotten)


def _sent(message: Message) -> SentMessage:
    content = text_of(message.content)
    return SentMessage(message.receiver, message.performative.value, content, message.number, message.answers)


def _milliseconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() * 1000 if at else 0.0


INPUTS: dict[type[ev.Payload], Callable[[Reasoner, Any], object]] = {
    ev.BeliefAdded: lambda mind, said: _believe(mind, said.key, said.value),
    ev.BeliefRemoved: lambda mind, said: _believe(mind, said.key, None),
    ev.GoalAdopted: _goal_adopted,
    ev.GoalEnded: _goal_ended,
    ev.BeliefTold: _told,
    ev.WorldPerceived: _perceived,
    ev.ActionRequested: _requested,
    ev.ActionStarted: _started,
    ev.ActionFinished: _finished,
    ev.ActionOutcomeUnknown: _unknown,
    ev.ActionCancelled: lambda mind, said: mind.requests.pop(said.action, None),
    ev.ActionWithdrawn: lambda mind, said: mind.requests.pop(said.action, None),
    ev.MessageHeard: _heard,
    ev.IntentionSteered: _steered,
    ev.StepGranted: lambda mind, said: mind.strides.grant(),
    ev.ReasonerAdvanced: lambda mind, said: mind.strides.end() if said.stride_over else None,
    **dict.fromkeys(
        (ev.AgentOpened, ev.AgentResumed, ev.AgentPaused, ev.AgentHeld, ev.AgentStopped, ev.BudgetReached),
        lambda mind, said: mind.strides.withdraw(),
    ),
    ev.TracingSet: lambda mind, said: setattr(mind, "tracing", said.on),
    ev.MindBreakpointChanged: _break_changed,
    ev.GenerationBegun: lambda mind, said: mind.making.begin(said),
    ev.GenerationSettled: lambda mind, said: mind.making.settle(said, mind.at),
}
"""What each kind of event of a stream brings to a reasoner."""
