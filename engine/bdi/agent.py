"""One BDI agent: its beliefs, plans and intentions, and the cycle that runs them.

The host drives it: percepts, messages and feedback go in, `cycle` runs one reasoning cycle, and what the
agent wants done comes back in the cycle's report. Nothing runs by itself, and time is what the host says.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from random import Random

from engine.bdi import belief_revision as believing
from engine.bdi import body_compiler as _body_compiler  # noqa: F401  (it lets plans compile their bodies)
from engine.bdi import control, goal_states, messages
from engine.bdi import saved_state as saving
from engine.bdi import trace as record
from engine.bdi import waits as waiting
from engine.bdi.beliefs import Answer
from engine.bdi.compiler import compile_formula
from engine.bdi.cycle import RESTED, SENSE, WORKED, CycleReport, act, deliberate, sense
from engine.bdi.errors import ErrorId, EvaluationError
from engine.bdi.goal_states import GoalState
from engine.bdi.instructions import free_cells, fresh_copy
from engine.bdi.intentions import Event, Frame, Intention, Message, Phase, RunningAgent, Waiting
from engine.bdi.internal_actions import Call, InternalActions
from engine.bdi.library.terms import STANDARD
from engine.bdi.parser import parse_term
from engine.bdi.plans import CompiledPlan, LoadedProgram, evaluated
from engine.bdi.printer import shown_text
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.syntax import Program
from engine.bdi.term_compiler import Scope
from engine.bdi.terms import FALSE, Struct, Term
from engine.bdi.trace import Change, TraceEvent
from engine.bdi.unification import Trail


class BdiAgent(RunningAgent):
    """An AgentSpeak(L) agent.

    Args:
        name: unique among agents that send each other messages.
        program: what it knows and does; a loaded one is shared, not copied.
        actions: external actions with the numbers of arguments they take; None accepts all.
        internal: internal actions; the standard library by default.
        say: gets what the agent prints.
        warn: gets a line for each goal that failed and that no plan handled.
        tracer: gets a record of everything that changes; None costs nothing.
        random: source of all chance.
        tag_goals: give the goals of the program the tags `goal1`, `goal2`, … in its order.
    """

    def __init__(
        self,
        name: str,
        program: Program | LoadedProgram,
        *,
        semantics: Semantics | None = None,
        limits: Limits | None = None,
        actions: dict[str, frozenset[int]] | None = None,
        internal: InternalActions | None = None,
        say: Callable[[str], None] | None = None,
        warn: Callable[[str], None] | None = None,
        tracer: Callable[[TraceEvent], None] | None = None,
        random: Random | None = None,
        tag_goals: bool = False,
    ) -> None:
        loaded = program if isinstance(program, LoadedProgram) else LoadedProgram(program)
        super().__init__(
            name, loaded, semantics or Semantics(), limits or Limits(), actions, random or Random(0)
        )
        self.internal = internal or STANDARD
        self.say, self.warn, self.tracer = say or self.say, warn or self.warn, tracer
        self.plans.watch = self._plans_changed
        believing.begin(self, loaded)
        for number, goal in enumerate(loaded.program.goals, 1):
            self.achieve(
                evaluated(goal.literal), sign=f"+{goal.kind}", tag=f"goal{number}" if tag_goals else ""
            )

    def save(self) -> saving.Data:
        """Its whole state between two phases, ready for JSON."""
        return saving.save(self)

    def restore(self, data: saving.Data) -> None:
        """Restore a saved state of the same program; raises SavedStateError where it does not fit."""
        saving.restore(self, data)

    # ------------------------------------------------------------------ what comes in

    def perceive(self, percepts: Iterable[Struct]) -> None:
        """Give all that is perceived now; the next cycle senses it."""
        self.percepts = tuple(percepts)

    def receive(self, message: Message) -> bool:
        """Put a message into the mailbox; False when it is full."""
        if len(self.mail) >= self.limits.messages:
            return False
        self.mail.append(message)
        return True

    def feedback(self, number: int, success: bool, reason: str = "", answer: Struct | None = None) -> None:
        """Say how an external action went.

        Args:
            number: of the request; one that nobody waits for any more is passed over.
            success: whether it was done.
            reason: why it failed.
            answer: the action with values for its variables.
        """
        waiting.action_done(self, number, success, reason, answer)

    def achieve(self, literal: Struct, *, sign: str = "+!", tag: str = "") -> None:
        """Adopt a goal, or with `+?` a test, as an intention of its own with variables of its own.

        Args:
            literal: the goal.
            sign: `+!` or `+?`.
            tag: a name of the host's for the goal, which `tags` lists while it is pursued.

        Raises:
            EvaluationError: too many events wait, or the goal has a deadline that is no number.
        """
        goal = fresh_copy(literal)
        self.post(Event(sign, goal, None, free_cells(goal), tag=tag))

    def tags(self) -> set[str]:
        """Tags of the goals that wait to be pursued, are pursued, or whose failure is being handled."""
        pursued = {intention.tag for intention in self.intentions.values()}
        return (pursued | {event.tag for event in self.events}) - {""}

    def tell(self, literal: Struct, *, removed: bool = False) -> None:
        """Let it believe something, or no longer; without a source it is its own belief.

        Raises:
            EvaluationError: the belief base is full, or too many events wait.
        """
        literal = fresh_copy(literal)
        change = believing.forget(self, literal) if removed else believing.believe(self, literal)
        if change is not None:
            believing.announce(self, change)

    # ------------------------------------------------------------------ the cycle

    def cycle(self, now: float | None = None) -> CycleReport:
        """Sense, deliberate, act: at most one event handled and one step run.

        Args:
            now: logical time in milliseconds, never less than before.

        Raises:
            ValueError: a cycle is under way, which `advance` continues with.
        """
        if self.phase is not SENSE:
            raise ValueError(f"{self.name} is in the middle of a cycle, before {self.phase}")
        self.cycles += 1
        if now is not None:
            self.now = now
        worked = sense(self)
        if self.events and deliberate(self):
            worked = True
        if self.ready and act(self):
            worked = True
        if self.requests or self.sent:
            return self._report(worked)
        return WORKED if worked else RESTED

    def advance(self, now: float | None = None) -> CycleReport:
        """Run exactly the next phase; three from SENSE do what `cycle` does.

        Args:
            now: logical time in milliseconds, never less than before.
        """
        if now is not None:
            self.now = now
        if self.phase is Phase.SENSE:
            self.cycles += 1
            self.phase, worked = Phase.DELIBERATE, sense(self)
        elif self.phase is Phase.DELIBERATE:
            self.phase, worked = Phase.ACT, deliberate(self)
        else:
            self.phase, worked = Phase.SENSE, act(self)
        return self._report(worked)

    def _report(self, worked: bool) -> CycleReport:
        if self.requests or self.sent:
            report = CycleReport(True, tuple(self.requests), tuple(self.sent))
            self.requests.clear()
            self.sent.clear()
            return report
        return WORKED if worked else RESTED

    @property
    def idle(self) -> bool:
        """True when only time, a percept, a message or feedback can give it something to do."""
        if (self.ready or self.events) and not self.suspensions:
            return False
        due = self.next_timer
        return not (
            any(event.intention is None or not event.intention.suspended for event in self.events)
            or self.mail
            or self.percepts is not None
            or any(not intention.suspended for intention in self.ready)
            or (due is not None and due <= self.now)
            or (self.conditions and self.checked_version != self.belief_version)
        )

    @property
    def next_timer(self) -> float | None:
        """Logical time at which a wait ends or an alarm is due, None when nothing happens by itself."""
        while self.timers and self.timers[0][1] not in self.pending:
            heapq.heappop(self.timers)
        due = self.timers[0][0] if self.timers else None
        if self.alarms and (alarm := waiting.soonest(self.alarms)) is not None:
            return alarm if due is None else min(due, alarm)
        return due

    # ------------------------------------------------------------------ intentions

    def post(self, event: Event, *, again: bool = False) -> None:
        """Let an event wait to be handled; an internal one's intention waits for it.

        Args:
            event: what has happened.
            again: whether it was handled before and is tried again.

        Raises:
            EvaluationError: too many events wait, or the goal has a deadline that is no number.
        """
        if event.literal.annotations and not again and event.sign in ("+!", "+?"):
            waiting.deadline(self, event)
        if event.intention is not None:
            event.intention.event = event
        elif len(self.events) >= self.limits.events:
            raise EvaluationError(ErrorId.LIMIT_EXCEEDED, f"{len(self.events)} events are waiting")
        self.events.append(event)
        if self.watchers and event.sign[1:]:
            waiting.happened(self, event.sign, event.literal)
        if self.tracer is not None:
            number = event.intention.id if event.intention else 0
            self.trace(record.EventQueued, event.text, number)
        if self.plans.meta and not again and event.sign[1:]:
            goal_states.announce_state(self, event.sign, event.literal, GoalState.STARTED)

    def step_done(self, intention: Intention) -> None:
        """The step that an intention waited for is through."""
        self._next_step(intention, intention.frames[-1])
        self.settle(intention)

    def _next_step(self, intention: Intention, frame: Frame) -> None:
        step = frame.code[frame.pc]
        frame.pc = step.next
        if self.tracer is not None:
            goal_states.step_succeeded(self, intention, frame, step)

    def settle(self, intention: Intention, *, cut_short: bool = False) -> None:
        """Take away frames whose bodies are through, and let the intention continue or end.

        Args:
            intention: the one of the frames.
            cut_short: the topmost body was left before its end.
        """
        frames = intention.frames
        while frames and frames[-1].pc == len(frames[-1].code):
            done = intention.pop()
            if self.plans.meta:
                goal_states.announce_state(self, done.sign, done.literal, GoalState.FINISHED)
            if self.tracer is not None:
                goal_states.frame_done(self, intention, done, cut_short=cut_short)
            cut_short = False
            if frames:
                self._next_step(intention, frames[-1])
        if self.atomics:
            self.interleave(intention)
        if frames:
            self.go_on(intention)
        else:
            self.end(intention, Change.FINISHED)

    def end(self, intention: Intention, change: Change, reason: str = "") -> None:
        """Forget an intention."""
        waiting.call_off(self, intention)
        if intention.joins:
            waiting.branch_done(self, intention, change, reason)
        if intention.question is not None and intention.asked is not None:
            achieved = change is Change.FINISHED
            messages.reply(self, intention.question, intention.asked if achieved else FALSE)
        while intention.frames:
            intention.pop()
        self.interleave(intention)
        self.suspensions.discard(intention.id)
        self.intentions.pop(intention.id, None)
        self.changed_intention(intention, change, reason)

    def changed_intention(self, intention: Intention, change: Change, reason: str = "") -> None:
        """Trace it."""
        if self.tracer is not None:
            self.trace(record.IntentionChanged, intention.id, change, reason)
        if self.plans.meta and change in (Change.SUSPENDED, Change.RESUMED):
            goal_states.announce_state_of_all(self, intention, GoalState(change.value), reason)

    # ------------------------------------------------------------------ from outside

    def intention(self, number: int) -> Intention:
        """The intention with this number; raises KeyError where there is none (any more)."""
        if number not in self.intentions:
            raise KeyError(f"there is no intention {number}")
        return self.intentions[number]

    def drop(self, number: int, reason: str = "dropped by the operator") -> None:
        """Take an intention away without a failure event."""
        control.drop(self, self.intention(number), reason)

    def suspend(self, number: int, reason: str = "suspended by the operator") -> None:
        """Hold an intention back before its next step."""
        control.suspend(self, self.intention(number), reason)

    def resume(self, number: int) -> None:
        """Let a suspended intention continue, or one that waited for a plan: its goal is tried again."""
        intention = self.intention(number)
        if intention.pending is not None and intention.pending.kind is Waiting.GENERATION:
            waiting.generation_done(self, intention)
        control.resume(self, intention)

    def fail(self, number: int, error_id: ErrorId, message: str) -> None:
        """Let what an intention waits for, or else its present step, fail."""
        waiting.fail(self, self.intention(number), error_id, message)

    def _plans_changed(self, added: CompiledPlan | None, removed: CompiledPlan | None) -> None:
        if self.tracer is not None:
            if removed is not None:
                self.trace(record.PlanRemoved, removed.name)
            if added is not None:
                self.trace(record.PlanAdded, added.name, added.text)

    # ------------------------------------------------------------------ actions

    def invoke(
        self, name: str, args: tuple[Term, ...], trail: Trail, intention: Intention | None = None
    ) -> Answer:
        """Run an internal action, as a step of an intention or inside a formula."""
        return self.internal.call(Call(self, name, args, trail, intention))


ANSWERS = 50
"""Answers of a formula that are said."""


def answer_texts(agent: BdiAgent, formula: str) -> list[str]:
    """The answers to a formula, each as the values of its variables, or yes; no where there is none.

    Raises:
        ProgramError: it cannot be read.
        EvaluationError: it cannot be evaluated.
    """
    scope = Scope()
    compiled = compile_formula(parse_term(formula.strip().removeprefix("?"), "the formula"), scope)
    query = compiled.answers(scope.environment(), agent)
    env = query.env
    texts: list[str] = []
    while query.advance():
        if len(texts) == ANSWERS:
            return [*texts, f"and more than these {ANSWERS}"]
        # A name of the compiler's own holds a space.
        values = {name: env[slot] for name, slot in scope.slots.items() if name.isidentifier()}
        texts.append(", ".join(f"{name} = {shown_text(value)}" for name, value in values.items()) or "yes")
    return texts or ["no"]
