"""The reasoner of one agent: brought forward by the events of its stream, and by nothing else.

What comes in (goals, beliefs, percepts, ends of actions, messages, plans) is an event before it gets here;
how far it goes on is recorded, and as it is deterministic so is what it did. So a reasoner can be had again
from the stream alone: `remember` shows it every event, and runs as many phases as `reasoner.advanced` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from engine.bdi import control, viewing
from engine.bdi.agent import BdiAgent
from engine.bdi.beliefs import is_source
from engine.bdi.believing import BeliefChange, announce, believe
from engine.bdi.cycle import Phase
from engine.bdi.messages import Message, Performative
from engine.bdi.parser import parse_literal, parse_program, parse_term, parse_trigger
from engine.bdi.printing import plan_text, text_of, trigger_text
from engine.bdi.problems import ErrorId, EvaluationError, ProgramError
from engine.bdi.syntax import Operation, Program, Step, StepKind, Trigger, TriggerKind, steps_of
from engine.bdi.terms import Struct, atom, canonical
from engine.bdi.views import IntentionView
from engine.bdi.waiting import ActionRequest
from engine.domain.reasoning import (
    REQUEST,
    GeneratedPlan,
    HeldBelief,
    MindBreakpoint,
    MindState,
    SentMessage,
    Stride,
    UnhandledFailure,
    WantedAction,
)
from engine.generation.pgp.asking import Prompt
from engine.generation.pgp.config import EffectiveConfig
from engine.generation.pgp.documentation import documentation_of
from engine.generation.pgp.inventions import with_inventions
from engine.generation.pgp.partial_plans import GeneratedPlans, Provenance
from engine.generation.pgp.reactive import Question, ReactiveProcedure
from engine.journal import events as ev
from engine.journal.event import Event
from engine.reasoner.actions import ActionError, ActionTable, answered, term_of
from engine.reasoner.breakpoints import Watch
from engine.reasoner.config import LIMITS, ReasonerConfig
from engine.reasoner.generation import actions_of, inventions_of, limits_of, plans_of, prompt_for
from engine.reasoner.run import FAILURES_LIMIT, Run, as_json, clipped, failure_of, in_brief, outcomes

INTENTIONS_SHOWN = 200
"""Intentions that the journal shows at a time, the oldest."""
OPERATOR = Struct("source", (atom("operator"),))


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
        self._strode = 0
        """Body steps of the stepped intention in the present stride."""
        self.visible: set[int] = set()
        """Intentions that the journal shows."""
        self.held: set[Struct] = set()
        """Beliefs that the journal shows."""
        self._by_step = False
        """Whether the operator let the reasoner run one body step when it last went on."""
        self.facts: dict[str, Any] = {}
        self.world: tuple[Struct, ...] = ()
        self.agent = self._agent(name, program)
        self.procedure: ReactiveProcedure | None = None
        """Makes plans for goals that have none; None where they are to fail."""
        if config.generation.on:
            self.procedure = ReactiveProcedure(self.agent, limits_of(config.generation))
        documented = documentation_of(program.docs)
        self.known = replace(documented, actions=actions_of(documented, actions))
        """What a model is told, with what earlier answers have made up."""
        self.questions: dict[str, Question] = {}
        """Questions that are being answered, by generation."""
        self.inventions: list[tuple[str, str, str]] = []
        """Goals and beliefs that the answers so far have made up."""
        self.begun = 0
        """Generations that were ever begun."""
        self.shown = GeneratedPlans()
        """The generated plans as they were last shown."""

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
        handler = _INPUTS.get(type(payload))
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

    def _goal_adopted(self, said: ev.GoalAdopted) -> None:
        sign, literal = read_goal(said.text)
        # Where too many events wait the goal is not pursued, and so ends with the next look at it.
        with suppress(EvaluationError):
            self.agent.achieve(literal, sign=sign, tag=said.goal)

    def _goal_ended(self, said: ev.GoalEnded) -> None:
        for intention in list(self.agent.intentions.values()):
            if intention.tag == said.goal:
                self.agent.drop(intention.id, said.reason or "its goal was given up")
        for event in [one for one in self.agent.events if one.tag == said.goal]:
            self.agent.events.remove(event)

    def _told(self, said: ev.BeliefTold) -> None:
        literal = parse_literal(said.literal)
        if said.removed:
            fact = self.agent.beliefs.find(_plain(literal))
            if fact is not None:
                self.agent.beliefs.drop(fact)
                self._announce(BeliefChange("-", fact.plain, fact.annotations))
            return
        if not any(map(is_source, literal.annotations)):
            literal = literal.with_annotations((*literal.annotations, OPERATOR))
        with suppress(EvaluationError):
            change = believe(self.agent, literal)
            if change is not None:
                self._announce(change)

    def _announce(self, change: BeliefChange) -> None:
        """Raise the event of a change that came from outside; too many that wait leave it out."""
        with suppress(EvaluationError):
            announce(self.agent, change)

    def _perceived(self, said: ev.WorldPerceived) -> None:
        self.facts |= said.facts
        if said.world is not None:
            self.world = percepts_of(said.world)
        self._look()

    def _learned(self, said: ev.BeliefAdded) -> None:
        self.facts[said.key] = said.value
        self._look()

    def _unlearned(self, said: ev.BeliefRemoved) -> None:
        self.facts[said.key] = None
        self._look()

    def _look(self) -> None:
        self.agent.perceive((*self.world, *facts_of(self.facts)))

    def _requested(self, said: ev.ActionRequested) -> None:
        if said.step.startswith(REQUEST):
            self.requests[said.action] = int(said.step[len(REQUEST) :])

    def _started(self, said: ev.ActionStarted) -> None:
        if self._by_step and said.action in self.requests:
            self._strode = 0

    def _finished(self, said: ev.ActionFinished) -> None:
        number = self.requests.pop(said.action, None)
        if said.world is not None:
            self.world = percepts_of(said.world)
            self._look()
        intention = self.agent.pending.get(number) if number is not None else None
        if number is None or intention is None or intention.pending is None:
            return
        action = canonical(intention.pending.what)
        assert isinstance(action, Struct)
        reason = "" if said.code is None else str(said.result.get("message") or said.summary or said.code)
        self.agent.feedback(number, said.code is None, reason, answered(action, said.result))

    def _unknown(self, said: ev.ActionOutcomeUnknown) -> None:
        number = self.requests.pop(said.action, None)
        if number is not None:
            self.agent.feedback(number, False, "the program ended while it ran; its outcome is unknown")

    def _put_back(self, said: ev.ActionCancelled | ev.ActionWithdrawn) -> None:
        self.requests.pop(said.action, None)

    def _heard(self, said: ev.MessageHeard) -> None:
        try:
            content = parse_term(said.content)
        except ProgramError:
            return
        kind = Performative(said.performative)
        self.agent.receive(Message(said.sender, self.agent.name, kind, content, said.number, said.answers))

    def _steered(self, said: ev.IntentionSteered) -> None:
        if said.intention not in self.agent.intentions:
            return
        match said.how:
            case "suspend":
                self.agent.suspend(said.intention, said.reason)
            case "resume":
                # Not `agent.resume`, which takes it that a plan was made for an intention that waits for one.
                control.resume(self.agent, self.agent.intentions[said.intention])
            case "drop":
                self.agent.drop(said.intention, said.reason)
            case "fail":
                self.agent.fail(said.intention, ErrorId.INTERNAL_ACTION_FAILED, said.reason)

    def _traced(self, said: ev.TracingSet) -> None:
        self.tracing = said.on

    def _generation_begun(self, said: ev.GenerationBegun) -> None:
        self.begun += 1
        if self.procedure is None:
            return
        if said.trigger == "proactive":
            self.procedure.propose(parse_trigger(said.goal))
        asked = {trigger_text(one.goal): one for one in self.procedure.questions}
        if said.goal in asked:
            self.questions[said.generation] = asked[said.goal]

    def _generation_settled(self, said: ev.GenerationSettled) -> None:
        question = self.questions.pop(said.generation, None)
        if question is None or self.procedure is None:
            return
        if not said.plans:
            self.procedure.give_up(question, said.reason)
            return
        source = Provenance(
            goal=trigger_text(question.goal),
            model=said.model,
            prompt_id=said.generation,
            time=self.at,
            depth=question.depth,
        )
        self.procedure.install(question, plans_of(said.plans), source, approved=said.approved)
        self.inventions += said.inventions
        self.known = with_inventions(self.known, inventions_of(said.inventions))

    def refusals(self, generation: str, plans: Sequence[str], *, approved: bool) -> tuple[bool, str]:
        """Whether none of these plans for a generation's goal could be installed, and why some could not."""
        question = self.questions.get(generation)
        if question is None or self.procedure is None:
            return True, "nobody waits for these plans any more"
        return self.procedure.refusals(question, plans_of(plans), approved=approved)

    def prompt(self, generation: str, config: EffectiveConfig, repair: str) -> Prompt | None:
        """What a model is to be asked for a generation; None when nobody waits for it any more."""
        question = self.questions.get(generation)
        return prompt_for(self.agent, question.goal, self.known, config, repair) if question else None

    def _new_questions(self) -> tuple[ev.GenerationBegun, ...]:
        """Goals that have come to need plans."""
        if self.procedure is None:
            return ()
        answered = {trigger_text(one.goal) for one in self.questions.values()}
        new = [one for one in self.procedure.questions if trigger_text(one.goal) not in answered]
        return tuple(
            ev.GenerationBegun(
                generation=f"q{self.begun + number}",
                goal=trigger_text(one.goal),
                trigger="reactive" if self.procedure.is_reactive(one.goal) else "on demand",
            )
            for number, one in enumerate(new, 1)
        )

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """Triggers of the plans that it has, without those that stand for a missing plan."""
        return self.procedure.triggers if self.procedure is not None else ()

    def unplanned(self) -> str:
        """A goal that some plan pursues and that no plan is for, the first one; empty when there is none."""
        for plan in self.agent.plans:
            for step in steps_of(plan.plan.body):
                if not isinstance(step, Step) or step.kind not in (StepKind.ACHIEVE, StepKind.SPAWN):
                    continue
                if not isinstance(step.term, Struct) or self.agent.plans.knows("+!", step.term.indicator):
                    continue
                goal = Trigger(Operation.ADDED, TriggerKind.ACHIEVE, _plain(step.term))
                if self.procedure is not None and self.procedure.may_propose(goal):
                    return trigger_text(goal)
        return ""

    def _break_changed(self, said: ev.MindBreakpointChanged) -> None:
        one = MindBreakpoint(said.breakpoint, said.on, said.pattern, said.enabled)
        self.watch.change(one, cleared=said.cleared)

    def _granted(self, said: ev.StepGranted) -> None:
        self._strode = 0

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
        self._by_step = run.stride is not None and run.stride.scope == "step"
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
            self._strode += run.stride.intention in (0, run.stepped)
        over = bool(run.wanted or run.reached) or run.full
        over = over or any(one.intention in self.tags for one in run.ended)
        over = over or (run.steps_left is not None and run.steps >= run.steps_left)
        if agent.phase is Phase.SENSE and agent.idle:
            over = True
            run.stride_over = run.stride is not None and not run.wanted and self._at_rest(run.stride)
        elif self.poised:
            run.stride_over = run.stride is not None and not run.wanted and self._arrived(run.stride)
            over = over or run.stride_over or run.poise
        run.open = not over

    def _at_rest(self, stride: Stride) -> bool:
        """Whether nothing more comes of a stride, as the reasoner waits."""
        if not self._strode or stride.scope == "step":
            return self._strode > 0
        stepped = self.agent.intentions.get(stride.intention)
        return stepped is None or bool(stepped.suspended) or self._arrived(stride)

    def _arrived(self, stride: Stride) -> bool:
        """Whether the reasoner has come as far as the operator let it step."""
        if not self._strode:
            return False
        if stride.scope == "step":
            return True
        stepped = self.agent.intentions.get(stride.intention)
        if stepped is None:
            return True
        if stepped.event is not None or stepped.pending is not None or len(stepped.frames) > stride.depth:
            return False
        # A frame that has taken the place of others stands for them.
        return len(stepped.frames) + sum(one.collapsed for one in stepped.frames) <= stride.depth

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
            self._strode = 0
        follows = (
            *(failure_of(one, self.tags.get(one.intention, "")) for one in self._worth_noting(run)),
            *outcomes(run, self.tags, open_goals, self.agent.tags()),
            *self._new_questions(),
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
            generated=self._generated(),
            stride_over=run.stride_over,
            trace=tuple(map(as_json, run.records)) if self.tracing else (),
        )

    def _generated(self) -> tuple[GeneratedPlan, ...] | None:
        """The generated plans, when they are not as they were last shown."""
        if self.procedure is None or self.procedure.generated == self.shown:
            return None
        self.shown = self.procedure.generated
        return tuple(
            GeneratedPlan(
                one.label,
                one.provenance.goal,
                plan_text(one.plan),
                one.provenance.model,
                one.provenance.prompt_id,
                len(one.plan.body),
                len(one.succeeded),
                one.verified,
            )
            for one in self.shown.plans
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


def read_goal(text: str) -> tuple[str, Struct]:
    """Sign and literal of a goal as an operator writes it: `reach(home)`, `!reach(home)`, `?where(X)`.

    Raises:
        ProgramError: it is none; the message names the place.
    """
    written = text.strip().removesuffix(".")
    sign = "+?" if written.startswith(("?", "+?")) else "+!"
    return sign, parse_literal(written.lstrip("+").lstrip("!?"), "the goal")


def percepts_of(world: Mapping[str, Any]) -> tuple[Struct, ...]:
    """What is perceived in a world."""
    return tuple(parse_literal(str(one)) for one in world.get("percepts", ()))


def facts_of(facts: Mapping[str, Any]) -> tuple[Struct, ...]:
    """Facts about the workspace as percepts: `workspace.entries` becomes a `workspace_entries(Item)` each."""
    found: list[Struct] = []
    for key, value in facts.items():
        if value is None:
            continue
        functor = "".join(one if one.isalnum() else "_" for one in key).lower()
        if functor[:1].isalpha():
            items = value if isinstance(value, list) else [value]
            found += [Struct(functor, (term_of(item),)) for item in items]
    return tuple(found)


def _plain(literal: Struct) -> Struct:
    made = canonical(literal.with_annotations(()))
    assert isinstance(made, Struct)
    return made


def _milliseconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() * 1000 if at else 0.0


_INPUTS: dict[type[ev.Payload], Callable[[Reasoner, Any], None]] = {
    ev.BeliefAdded: Reasoner._learned,
    ev.BeliefRemoved: Reasoner._unlearned,
    ev.GoalAdopted: Reasoner._goal_adopted,
    ev.GoalEnded: Reasoner._goal_ended,
    ev.BeliefTold: Reasoner._told,
    ev.WorldPerceived: Reasoner._perceived,
    ev.ActionRequested: Reasoner._requested,
    ev.ActionStarted: Reasoner._started,
    ev.ActionFinished: Reasoner._finished,
    ev.ActionOutcomeUnknown: Reasoner._unknown,
    ev.ActionCancelled: Reasoner._put_back,
    ev.ActionWithdrawn: Reasoner._put_back,
    ev.MessageHeard: Reasoner._heard,
    ev.IntentionSteered: Reasoner._steered,
    ev.StepGranted: Reasoner._granted,
    ev.TracingSet: Reasoner._traced,
    ev.MindBreakpointChanged: Reasoner._break_changed,
    ev.GenerationBegun: Reasoner._generation_begun,
    ev.GenerationSettled: Reasoner._generation_settled,
}
