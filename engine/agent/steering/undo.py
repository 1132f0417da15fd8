"""Undoing an operator's last change: the command that makes up for it, or why there is none.

Everything follows from the agent's events: what was done, and the states before it, after it and now. A
compensation is an ordinary command, shown before it is sent and recorded like any other; a redo is the
compensation of an undo. A table says what makes up for each kind of command; new commands add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.agent.steering.rules import rule_text
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.approvals import Answer, Policy, Source
from engine.core.breakpoints import write_break
from engine.core.budgets import SpendingLimits
from engine.core.journal import Event
from engine.core.plan import Plan, PlanStep
from engine.core.reasons import Reason, read_words
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.streams import StreamHistory
from engine.core.text import clean_line
from engine.value import asdict, dataclass, replace


class UndoError(Exception):
    """There is nothing to undo, or it cannot be; the message says why and what can be done instead."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """How the agent stood around a command."""

    before: AgentState
    after: AgentState
    now: AgentState


Compensation = Callable[[Any, CommandContext], tuple[cmd.Command, str]]
"""Makes the command that makes up for one, without its agent, with words about it."""

CALL_CHARS = 200
"""Characters of a call in words."""

# ------------------------------------------------------------------ plans, beliefs and turns: put back


def _put_back(event: cmd.Command, around: CommandContext) -> tuple[cmd.Command, str]:
    """What a command changed of plans, beliefs and the operator's turn, put back as it was."""
    before, after, now = around.before, around.after, around.now
    words: list[str] = []
    goals = [goal for goal in after.plans if before.plans.get(goal) != after.plans[goal]]
    steps: tuple[PlanStep, ...] | None = None
    for goal in goals[:1]:
        steps = _steps_before(before.plans.get(goal), after.plans[goal], now.plans.get(goal), words)
    keys = [
        key
        for key in dict.fromkeys((*before.beliefs, *after.beliefs))
        if _same(before, key) != _same(after, key)
    ]
    for key in keys:
        if _same(now, key) != _same(after, key):
            raise UndoError(f"the belief {key} has changed again since")
        held = before.beliefs.get(key)
        words.append(f"believe {key} = {held.value} again" if held else f"no longer believe {key}")
    turn = before.intervention if after.intervention is None and now.intervention is None else None
    if turn is not None:
        words.append("your turn again")
    if not words:
        raise UndoError(f"{event.do} left nothing to undo")
    held_before = tuple(before.beliefs[key] for key in keys if key in before.beliefs)
    forget = tuple(key for key in keys if key not in before.beliefs)
    goal = goals[0] if goals else ""
    back = cmd.PutBack(goal=goal, steps=steps, beliefs=held_before, forget=forget, turn=turn)
    return back, "; ".join(words)


def _same(state: AgentState, key: str) -> tuple[Any, ...]:
    """What makes a belief another one."""
    held = state.beliefs.get(key)
    return () if held is None else (held.value, held.confidence, held.source)


def _steps_before(
    before: Plan | None, after: Plan, now: Plan | None, words: list[str]
) -> tuple[PlanStep, ...]:
    """The steps as they are now without what one change did to them.

    Raises:
        UndoError: what it changed is another now.
    """
    if before is None:
        raise UndoError("there was no plan before this one; change the goal, or give another plan")
    then = {step.id: step for step in before.steps}
    done = {step.id: step for step in after.steps}
    here = {step.id: step for step in now.steps} if now else {}
    touched = [key for key in dict.fromkeys((*then, *done)) if _plain(then.get(key)) != _plain(done.get(key))]
    for key in touched:
        if _plain(here.get(key)) != _plain(done.get(key)):
            raise UndoError(
                f"step {key} has run or was changed since; rewind {key} takes it back with its files"
            )
        words.append(_change_text(then.get(key), done.get(key)))
    if not touched:
        words.append("the steps in their order before")
    order = _order(then, here, done, touched)
    return tuple(then[key] if key in touched else here[key] for key in order)


def _order(
    then: Collection[str], here: Collection[str], done: Collection[str], touched: Collection[str]
) -> list[str]:
    """The steps' ids as they were ordered then; one that came after the change stays behind its neighbour."""
    kept = [key for key in then if key in here or key in touched]
    before_it: list[str] = []
    for key in here:
        if key not in kept and key not in done:
            place = max((kept.index(other) for other in before_it if other in kept), default=-1)
            kept.insert(place + 1, key)
        before_it.append(key)
    return kept


def _plain(step: PlanStep | None) -> PlanStep | None:
    return replace(step, event="") if step is not None else None


def _change_text(then: PlanStep | None, done: PlanStep | None) -> str:
    if then is None and done is not None:
        return f"delete step {done.id} ({done.description})"
    if done is None and then is not None:
        return f"put step {then.id} ({then.description}) back"
    assert then is not None
    assert done is not None
    if (now := _call_text(done)) != (was := _call_text(then)):
        return f"step {then.id}: {now} → {was}"
    return f"step {then.id} is again: {then.description} [{then.status}]"


def _call_text(step: PlanStep) -> str:
    words = (step.command or step.op.value, *(f"{name}={value}" for name, value in step.args.items()))
    return clean_line(" ".join(words), limit=CALL_CHARS)


# ------------------------------------------------------------------ the other commands


def _new(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return next((key for key in after if key not in before), "")


def _adopted(event: cmd.Command, around: CommandContext) -> tuple[cmd.Command, str]:
    goal = around.now.goals[_new(around.before.goals, around.after.goals)]
    if goal.status.terminal:
        raise UndoError(f"goal {goal.id} is {goal.status} already")
    return cmd.DropGoal(goal=goal.id, reason=Reason("goal.undone")), f"drop goal {goal.id}: {goal.text}"


def _changed_goal(event: cmd.ChangeGoal, around: CommandContext) -> tuple[cmd.Command, str]:
    was, after, now = (state.goals[event.goal] for state in (around.before, around.after, around.now))
    if (now.text, now.priority) != (after.text, after.priority):
        raise UndoError(f"goal {event.goal} was changed again since")
    plan = "; its plan is made anew" if was.text != now.text else ""
    back = cmd.ChangeGoal(goal=event.goal, text=was.text, priority=was.priority)
    return back, f"goal {event.goal} is again: {was.text} (priority {was.priority}){plan}"


def _moved_goal(event: cmd.MoveGoal, around: CommandContext) -> tuple[cmd.Command, str]:
    parent = around.before.goals[event.goal].parent or ""
    where = f"serves {parent} again" if parent else "serves no other goal again"
    return cmd.MoveGoal(goal=event.goal, parent=parent), f"goal {event.goal} {where}"


def _switched(field: str, yes: str, no: str) -> Compensation:
    """What makes up for a command that switches something: the same command the other way round."""

    def switch(event: cmd.Command, around: CommandContext) -> tuple[cmd.Command, str]:
        on = getattr(event, field)
        words = (yes if on else no).format(**event.model_dump())
        return event.model_copy(update={field: not on}), words

    return switch


def _disputed(event: cmd.Dispute, around: CommandContext) -> tuple[cmd.Command, str]:
    reason = around.before.disputed.get(event.event, "")
    back = cmd.Dispute(event=event.event, reason=reason, lifted=not event.lifted)
    return back, f"{event.event} is {'disputed' if event.lifted else 'no longer disputed'}"


def _granted(
    event: cmd.GrantRule | cmd.AnswerApproval | cmd.TakeRule, around: CommandContext
) -> tuple[cmd.Command, str]:
    """A rule that was given is revoked; a single answer is not taken back."""
    had = {grant.id for grant in around.before.approvals.grants}
    given = next((grant for grant in around.after.approvals.grants if grant.id not in had), None)
    if given is None:
        raise UndoError("an answer that was for once cannot be undone; a rewind takes back what it let run")
    if given not in around.now.approvals.grants:
        raise UndoError(f"{given.id} holds no longer")
    return cmd.RevokeRule(grant=given.id), f"revoke {given.id}: {rule_text(given.rule)}"


def _shown(back: type[cmd.ReleaseContext | cmd.RestoreContext], words: str) -> Compensation:
    return lambda said, around: (back(what=said.what), words.format(what=said.what))


def _set_break(event: cmd.SetBreak, around: CommandContext) -> tuple[cmd.Command, str]:
    if not (made := _new(around.before.points, around.after.points)):
        changed = (key for key, point in around.after.points.items() if around.before.points[key] != point)
        return _break(next(changed, ""), enabled=False)
    spec = around.after.points[made].spec  # cleared and set again it has another id
    there = next((key for key, point in around.now.points.items() if point.spec == spec), "")
    if not there:
        raise UndoError(f"breakpoint {made} is gone already")
    return cmd.ChangeBreak(breakpoint=there, cleared=True), f"clear breakpoint {there}: {event.line}"


def _break_on(event: cmd.BreakOn, around: CommandContext) -> tuple[cmd.Command, str]:
    known = around.now.mind_breakpoints.items()
    made = next((key for key, point in known if (point.on, point.pattern) == (event.on, event.pattern)), "")
    if not made:
        raise UndoError("that breakpoint is gone already")
    words = f"clear breakpoint {made} on {event.on} {event.pattern}"
    return cmd.ChangeBreak(breakpoint=made, cleared=True), words


def _change_break(event: cmd.ChangeBreak, around: CommandContext) -> tuple[cmd.Command, str]:
    ident = event.breakpoint
    if ident in around.before.breakpoints:
        return cmd.SetBreakpoint(step=ident), f"set the breakpoint on {ident}"
    point = around.before.points.get(ident)
    if point is not None and event.cleared:
        line = write_break(point.spec)
        return cmd.SetBreak(line=line), f"break again at {line}; its hits are counted anew"
    if point is not None:
        return _break(ident, enabled=point.enabled)
    was = around.before.mind_breakpoints[ident]
    if event.cleared:
        again = cmd.BreakOn.model_validate({"on": was.on, "pattern": was.pattern})
        return again, f"a breakpoint on {was.on} {was.pattern} again"
    return _break(ident, enabled=was.enabled)


def _break(ident: str, *, enabled: bool) -> tuple[cmd.Command, str]:
    words = f"breakpoint {ident} {'on' if enabled else 'off'} again"
    return cmd.ChangeBreak(breakpoint=ident, enabled=enabled), words


def _budget(event: cmd.SetBudget, around: CommandContext) -> tuple[cmd.Command, str]:
    was = around.before.goal_budgets.get(event.goal) if event.goal else around.before.budget
    back = cmd.SetBudget.model_validate({"goal": event.goal, **asdict(was or SpendingLimits())})
    if event.goal:
        return back, f"budget of {event.goal} as before: {was}" if was else f"no budget of {event.goal} again"
    return back, f"the budget as before: {was}" if was else "no budget of its own again"


def _configured(event: cmd.ConfigureAgent, around: CommandContext) -> tuple[cmd.Command, str]:
    was = around.before.config.meta
    settings = {name: dict(was.get(name, {})) for name in event.settings}
    return cmd.ConfigureAgent(settings=settings), f"{', '.join(settings)} as before"


def _paused(event: cmd.Pause, around: CommandContext) -> tuple[cmd.Command, str]:
    was = around.before
    if was.run is not RunState.RUNNING:
        raise UndoError("it was paused before as well")
    return cmd.Run(max_loops=was.max_loops, until=was.until, ask=was.config.ask), "let it run again"


def _thresholds(event: cmd.SetThresholds, around: CommandContext) -> tuple[cmd.Command, str]:
    meta = around.before.meta
    was = {"reflection": meta.reflection_threshold, "consolidation": meta.consolidation_threshold}
    words = ", ".join(f"{name} {value}" for name, value in was.items())
    return cmd.SetThresholds(**was), f"thresholds as before: {words}"


def _revoked(event: cmd.RevokeRule, around: CommandContext) -> tuple[cmd.Command, str]:
    kept = {grant.id for grant in around.after.approvals.grants}
    gone = next((grant for grant in around.before.approvals.grants if grant.id not in kept), None)
    if gone is None:
        raise UndoError("an envelope is given again by accepting the plan: accept, or press a")
    if gone.rule.answer is not Answer.ALLOW:
        raise UndoError(f"{gone.id} denied calls; rules propose proposes it again")
    again = cmd.GrantRule.model_validate({"rule": rule_text(gone.rule), "scope": gone.scope.value})
    return again, f"allow again, {gone.scope}: {rule_text(gone.rule)}"


def _accepted(event: cmd.AcceptPlan, around: CommandContext) -> tuple[cmd.Command, str]:
    if event.goal not in around.now.approvals.envelopes:
        raise UndoError(f"the envelope of {event.goal} holds no longer")
    words = f"take back the envelope of {event.goal}; its plan stays the accepted one"
    return cmd.RevokeRule(grant=event.goal), words


def _policy(event: cmd.SetApprovals, around: CommandContext) -> tuple[cmd.Command, str]:
    was = around.before.approvals.policies.get(Source.OPERATOR.value, Policy())
    rules = [{**asdict(rule), "answer": rule.answer.value} for rule in was.rules]
    back = cmd.SetApprovals(policy={"default": was.default.value, "rules": rules})
    return back, "what it is to ask about, as before"


_PUT_BACK: Iterable[type[cmd.Command]] = (
    *(cmd.EditStep, cmd.InsertStep, cmd.DeleteStep, cmd.MoveStep, cmd.SkipStep, cmd.GiveResult),
    *(cmd.RetryStep, cmd.ReplacePlan, cmd.Believe, cmd.Forget, cmd.PutBack),
)
COMPENSATIONS: dict[type[cmd.Command], Compensation] = {
    **dict.fromkeys(_PUT_BACK, _put_back),
    cmd.AdoptGoal: _adopted,
    cmd.PushGoal: _adopted,
    cmd.ChangeGoal: _changed_goal,
    cmd.MoveGoal: _moved_goal,
    cmd.SetBreakpoint: _switched("on", "clear the breakpoint on {step}", "set the breakpoint on {step}"),
    cmd.BreakOn: _break_on,
    cmd.ChangeBreak: _change_break,
    cmd.SetBudget: _budget,
    cmd.SetBreak: _set_break,
    cmd.Dispute: _disputed,
    cmd.GrantRule: _granted,
    cmd.AnswerApproval: _granted,
    cmd.TakeRule: _granted,
    cmd.RevokeRule: _revoked,
    cmd.AcceptPlan: _accepted,
    cmd.SetApprovals: _policy,
    cmd.ConfigureAgent: _configured,
    cmd.Pause: _paused,
    cmd.Run: lambda said, around: (cmd.Pause(), "pause it; what it has done stays, rewind takes that back"),
    cmd.SetThresholds: _thresholds,
    cmd.VetoMeta: _switched("lifted", "{task} vetoed again", "{task} allowed again"),
    cmd.RestoreContext: _shown(cmd.ReleaseContext, "leave {what} out of the next prompts again"),
    cmd.ReleaseContext: _shown(cmd.RestoreContext, "have {what} in the next prompts again"),
    cmd.SetTracing: _switched("on", "tracing off again", "tracing on again"),
    cmd.Intervene: lambda said, around: (cmd.HandBack(), "hand the turn back"),
    cmd.TellBelief: _switched("removed", "believe {literal}", "no longer believe {literal}"),
}
"""What makes up for each kind of command."""

CANNOT = read_words(Path(__file__).with_suffix(".txt"))
"""Why other commands are not undone, by their names; `{at}` is the event of the command."""


REACH = 200
"""Newest commands among which the one to undo is looked for."""


@dataclass(frozen=True, slots=True)
class UndoOffer:
    """What an undo would do."""

    of: str
    """Reference of the command that is undone."""
    by: str
    """Who gave it."""
    words: str
    """What would be done, in words."""
    command: cmd.Command
    again: bool = False
    """Whether this is a redo: what is undone is an undo."""

    def as_command(self, agent: str) -> cmd.Command:
        """The command to send: a rewind is rewound by itself, all else is an `Undo`."""
        if isinstance(self.command, cmd.Rewind):
            return self.command
        return cmd.Undo(agent=agent, of=self.of, command=self.command.model_dump(), again=self.again)


async def last_change(
    store: JournalStore, past: StreamHistory, now: AgentState, *, again: bool = False
) -> UndoOffer:
    """What undoes the newest change that an operator made and that is not undone yet.

    Args:
        store: the journal.
        past: of the agent.
        now: its present state, all of it durable.
        again: redo instead: what brings back the change that was undone last.

    Raises:
        UndoError: there is none, or it cannot be undone.
        JournalError: the journal cannot be read.
    """
    received = await store.last(REACH, past.stream, kind=ev.CommandReceived.kind)
    undone: set[str] = set()
    for event in reversed(received):
        command = _command_of(event)
        ended = await _ended(store, event, command) if command is not None else 0
        if command is None or not ended:
            continue
        if isinstance(command, cmd.Undo):
            if event.ref in undone:
                continue
            if not again or command.again:
                undone.add(command.of)
                continue
        elif event.ref in undone:
            continue
        elif again:
            raise UndoError("nothing was undone since your last change")
        inner = cmd.parse_command(command.command) if isinstance(command, cmd.Undo) else command
        before, after = await past.state(event.version), await past.state(ended)
        return _offer(event, inner, CommandContext(before, after, now), again)
    raise UndoError("nothing was undone" if again else "there is no change of an operator's to undo")


def _command_of(event: Event) -> cmd.Command | None:
    payload = ev.payload_of(event)
    assert isinstance(payload, ev.CommandReceived)
    try:
        return cmd.parse_command(payload.command)
    except ValueError:
        return None  # of another version


async def _ended(store: JournalStore, event: Event, command: cmd.Command) -> int:
    """The version of the last event by which a command was carried out; 0 where it changed nothing."""
    if isinstance(command, cmd.Rewind):
        kinds = (ev.Rewound.kind, ev.RewindFailed.kind, ev.CommandRefused.kind, ev.RewindCutOff.kind)
        places = await store.places(event.stream, kinds, event.version, event.version + 100_000)
        return places[0][0] if places and places[0][1] == ev.Rewound.kind else 0
    ended = 0
    for later in await store.read(event.stream, event.version + 1, event.version + 32):
        if event.ref not in later.causes or later.kind == ev.CommandRefused.kind:
            break
        ended = later.version
    return ended


def _offer(event: Event, command: cmd.Command, around: CommandContext, again: bool) -> UndoOffer:
    by = event.actor.removeprefix("operator:")
    if isinstance(command, cmd.Rewind):
        back = cmd.Rewind(agent=event.stream, to=event.version, scope=command.scope, paths=command.paths)
        return UndoOffer(event.ref, by, f"take back the rewind to event {command.to}", back)
    if isinstance(command, cmd.AdoptFork):
        back = cmd.Rewind(agent=event.stream, to=event.version, scope="files")
        return UndoOffer(event.ref, by, f"give back the files of {command.fork}", back)
    if why := CANNOT.get(command.do):
        raise UndoError(f"{command.do} of {by} cannot be undone: {why.format(at=event.version)}")
    make = COMPENSATIONS.get(type(command))
    if make is None:
        raise UndoError(f"{command.do} cannot be undone; rewind {event.version} takes back everything since")
    made, words = make(command, around)
    return UndoOffer(event.ref, by, words, made.model_copy(update={"agent": event.stream}), again)
