"""What makes up for each kind of command, or why nothing does: a table that new commands add to.

A compensation is a function from the command and the states around it to another command and what that does,
in words. Source: steering §1 row 39.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.domain import commands as cmd
from engine.domain.approval import Policy, Source
from engine.domain.break_lines import write_break
from engine.domain.budgets import SpendingLimits
from engine.domain.plan import Plan, PlanStep
from engine.domain.state import AgentState, RunState
from engine.steering.rules import rule_text


class UndoError(Exception):
    """There is nothing to undo, or it cannot be; the message says why and what can be done instead."""


@dataclass(frozen=True, slots=True)
class Around:
    """How the agent stood around a command."""

    before: AgentState
    after: AgentState
    now: AgentState


# ------------------------------------------------------------------ plans, beliefs and turns: put back


def _put_back(said: cmd.Command, around: Around) -> tuple[cmd.Command, str]:
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
        raise UndoError(f"{said.do} left nothing to undo")
    held_before = tuple(before.beliefs[key] for key in keys if key in before.beliefs)
    forget = tuple(key for key in keys if key not in before.beliefs)
    back = cmd.PutBack(
        agent=now.agent_id,
        goal=goals[0] if goals else "",
        steps=steps,
        beliefs=held_before,
        forget=forget,
        turn=turn,
    )
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
    touched = [one for one in dict.fromkeys((*then, *done)) if _plain(then.get(one)) != _plain(done.get(one))]
    for one in touched:
        if _plain(here.get(one)) != _plain(done.get(one)):
            raise UndoError(
                f"step {one} has run or was changed since; rewind {one} takes it back with its files"
            )
        words.append(_told(then.get(one), done.get(one)))
    if not touched:
        words.append("the steps in their order before")
    kept = [one for one in then if one in here or one in touched]
    for one in here:
        if one not in kept and one not in done:  # came after the change
            before_it = [*here][: [*here].index(one)]
            place = max((kept.index(other) for other in before_it if other in kept), default=-1)
            kept.insert(place + 1, one)
    return tuple(then[one] if one in touched else here[one] for one in kept)


def _plain(step: PlanStep | None) -> PlanStep | None:
    return replace(step, event="") if step is not None else None


def _told(then: PlanStep | None, done: PlanStep | None) -> str:
    if then is None and done is not None:
        return f"delete step {done.id} ({done.description})"
    if done is None and then is not None:
        return f"put step {then.id} ({then.description}) back"
    assert then is not None
    return f"step {then.id} is again: {then.description} [{then.status}]"


# ------------------------------------------------------------------ the other commands


def _new(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return next((key for key in after if key not in before), "")


def _adopted(said: cmd.Command, around: Around) -> tuple[cmd.Command, str]:
    goal = _new(around.before.goals, around.after.goals)
    if around.now.goals[goal].status.terminal:
        raise UndoError(f"goal {goal} is {around.now.goals[goal].status} already")
    words = f"drop goal {goal}: {around.now.goals[goal].text}"
    return cmd.DropGoal(agent=around.now.agent_id, goal=goal, reason="its giving was undone"), words


def _changed_goal(said: cmd.ChangeGoal, around: Around) -> tuple[cmd.Command, str]:
    was, now = around.before.goals[said.goal], around.now.goals[said.goal]
    if (now.text, now.priority) != (
        around.after.goals[said.goal].text,
        around.after.goals[said.goal].priority,
    ):
        raise UndoError(f"goal {said.goal} was changed again since")
    plan = "; its plan is made anew" if was.text != now.text else ""
    back = cmd.ChangeGoal(agent=around.now.agent_id, goal=said.goal, text=was.text, priority=was.priority)
    return back, f"goal {said.goal} is again: {was.text} (priority {was.priority}){plan}"


def _moved_goal(said: cmd.MoveGoal, around: Around) -> tuple[cmd.Command, str]:
    parent = around.before.goals[said.goal].parent or ""
    where = f"serves {parent} again" if parent else "serves no other goal again"
    return cmd.MoveGoal(agent=around.now.agent_id, goal=said.goal, parent=parent), f"goal {said.goal} {where}"


def _breakpoint(said: cmd.SetBreakpoint, around: Around) -> tuple[cmd.Command, str]:
    back = cmd.SetBreakpoint(agent=around.now.agent_id, step=said.step, on=not said.on)
    return back, f"{'clear the' if said.on else 'set the'} breakpoint on {said.step}"


def _set_break(said: cmd.SetBreak, around: Around) -> tuple[cmd.Command, str]:
    agent, now = around.now.agent_id, around.now.points
    if not (made := _new(around.before.points, around.after.points)):
        changed = (key for key, one in around.after.points.items() if around.before.points[key] != one)
        ident = next(changed, "")
        return cmd.ChangeBreak(agent=agent, breakpoint=ident, enabled=False), f"breakpoint {ident} off again"
    spec = around.after.points[made].spec  # cleared and set again it has another id
    there = next((key for key, one in now.items() if one.spec == spec), "")
    if not there:
        raise UndoError(f"breakpoint {made} is gone already")
    return cmd.ChangeBreak(
        agent=agent, breakpoint=there, cleared=True
    ), f"clear breakpoint {there}: {said.line}"


def _disputed(said: cmd.Dispute, around: Around) -> tuple[cmd.Command, str]:
    reason = around.before.disputed.get(said.event, "")
    back = cmd.Dispute(agent=around.now.agent_id, event=said.event, reason=reason, lifted=not said.lifted)
    return back, f"{said.event} is {'disputed' if said.lifted else 'no longer disputed'}"


def _granted(said: cmd.GrantRule | cmd.AnswerApproval, around: Around) -> tuple[cmd.Command, str]:
    """A rule that was given is revoked; a single answer is not taken back."""
    had = {grant.id for grant in around.before.approvals.grants}
    given = next((one for one in around.after.approvals.grants if one.id not in had), None)
    if given is None:
        raise UndoError("an answer that was for once cannot be undone; a rewind takes back what it let run")
    if given not in around.now.approvals.grants:
        raise UndoError(f"{given.id} holds no longer")
    revoke = cmd.RevokeRule(agent=around.now.agent_id, grant=given.id)
    return revoke, f"revoke {given.id}: {rule_text(given.rule)}"


def _break_on(said: cmd.BreakOn, around: Around) -> tuple[cmd.Command, str]:
    now = around.now.mind_breakpoints
    made = next((key for key, one in now.items() if (one.on, one.pattern) == (said.on, said.pattern)), "")
    if not made:
        raise UndoError("that breakpoint is gone already")
    back = cmd.ChangeBreak(agent=around.now.agent_id, breakpoint=made, cleared=True)
    return back, f"clear breakpoint {made} on {said.on} {said.pattern}"


def _change_break(said: cmd.ChangeBreak, around: Around) -> tuple[cmd.Command, str]:
    agent, ident = around.now.agent_id, said.breakpoint
    if ident in around.before.breakpoints:
        return cmd.SetBreakpoint(agent=agent, step=ident), f"set the breakpoint on {ident}"
    point = around.before.points.get(ident)
    if point is not None and said.cleared:
        line = write_break(point.spec)
        return cmd.SetBreak(agent=agent, line=line), f"break again at {line}; its hits are counted anew"
    if point is not None:
        back = cmd.ChangeBreak(agent=agent, breakpoint=ident, enabled=point.enabled)
        return back, f"breakpoint {ident} {'on' if point.enabled else 'off'} again"
    was = around.before.mind_breakpoints[ident]
    if said.cleared:
        again = {"agent": around.now.agent_id, "on": was.on, "pattern": was.pattern}
        return cmd.BreakOn.model_validate(again), f"a breakpoint on {was.on} {was.pattern} again"
    back = cmd.ChangeBreak(agent=around.now.agent_id, breakpoint=said.breakpoint, enabled=was.enabled)
    return back, f"breakpoint {said.breakpoint} {'on' if was.enabled else 'off'} again"


def _budget(said: cmd.SetBudget, around: Around) -> tuple[cmd.Command, str]:
    before = around.before
    was = before.goal_budgets.get(said.goal) if said.goal else before.budget
    whose = {"agent": around.now.agent_id, "goal": said.goal}
    back = cmd.SetBudget.model_validate({**whose, **asdict(was or SpendingLimits())})
    if said.goal:
        return back, f"budget of {said.goal} as before: {was}" if was else f"no budget of {said.goal} again"
    return back, f"the budget as before: {was}" if was else "no budget of its own again"


def _paused(said: cmd.Pause, around: Around) -> tuple[cmd.Command, str]:
    was = around.before
    if was.run is not RunState.RUNNING:
        raise UndoError("it was paused before as well")
    back = cmd.Run(agent=was.agent_id, max_loops=was.max_loops, until=was.until, ask=was.config.ask)
    return back, "let it run again"


def _ran(said: cmd.Run, around: Around) -> tuple[cmd.Command, str]:
    return cmd.Pause(agent=around.now.agent_id), "pause it; what it has done stays, rewind takes that back"


def _thresholds(said: cmd.SetThresholds, around: Around) -> tuple[cmd.Command, str]:
    meta = around.before.meta
    was = {"reflection": meta.reflection_threshold, "consolidation": meta.consolidation_threshold}
    back = cmd.SetThresholds(agent=around.now.agent_id, **was)
    return back, "thresholds as before: " + ", ".join(f"{name} {value}" for name, value in was.items())


def _vetoed(said: cmd.VetoMeta, around: Around) -> tuple[cmd.Command, str]:
    back = cmd.VetoMeta(agent=around.now.agent_id, task=said.task, lifted=not said.lifted)
    return back, f"{said.task} {'vetoed' if said.lifted else 'allowed'} again"


def _tracing(said: cmd.SetTracing, around: Around) -> tuple[cmd.Command, str]:
    return cmd.SetTracing(
        agent=around.now.agent_id, on=not said.on
    ), f"tracing {'off' if said.on else 'on'} again"


def _intervened(said: cmd.Intervene, around: Around) -> tuple[cmd.Command, str]:
    return cmd.HandBack(agent=around.now.agent_id), "hand the turn back"


def _told_belief(said: cmd.TellBelief, around: Around) -> tuple[cmd.Command, str]:
    back = cmd.TellBelief(agent=around.now.agent_id, literal=said.literal, removed=not said.removed)
    return back, f"{'believe' if said.removed else 'no longer believe'} {said.literal}"


def _revoked(said: cmd.RevokeRule, around: Around) -> tuple[cmd.Command, str]:
    kept = {grant.id for grant in around.after.approvals.grants}
    gone = next((one for one in around.before.approvals.grants if one.id not in kept), None)
    if gone is None:
        raise UndoError("an envelope is given again by accepting the plan: accept, or press a")
    again = {"agent": around.now.agent_id, "rule": rule_text(gone.rule), "scope": gone.scope.value}
    return cmd.GrantRule.model_validate(again), f"allow again, {gone.scope}: {rule_text(gone.rule)}"


def _accepted(said: cmd.AcceptPlan, around: Around) -> tuple[cmd.Command, str]:
    if said.goal not in around.now.approvals.envelopes:
        raise UndoError(f"the envelope of {said.goal} holds no longer")
    words = f"take back the envelope of {said.goal}; its plan stays the accepted one"
    return cmd.RevokeRule(agent=around.now.agent_id, grant=said.goal), words


def _policy(said: cmd.SetApprovals, around: Around) -> tuple[cmd.Command, str]:
    was = around.before.approvals.policies.get(Source.OPERATOR.value, Policy())
    rules = [{**asdict(rule), "answer": rule.answer.value} for rule in was.rules]
    back = cmd.SetApprovals(agent=around.now.agent_id, policy={"default": was.default.value, "rules": rules})
    return back, "what it is to ask about, as before"


Compensation = Callable[[Any, Around], tuple[cmd.Command, str]]

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
    cmd.SetBreakpoint: _breakpoint,
    cmd.BreakOn: _break_on,
    cmd.ChangeBreak: _change_break,
    cmd.SetBudget: _budget,
    cmd.SetBreak: _set_break,
    cmd.Dispute: _disputed,
    cmd.GrantRule: _granted,
    cmd.AnswerApproval: _granted,
    cmd.RevokeRule: _revoked,
    cmd.AcceptPlan: _accepted,
    cmd.SetApprovals: _policy,
    cmd.Pause: _paused,
    cmd.Run: _ran,
    cmd.SetThresholds: _thresholds,
    cmd.VetoMeta: _vetoed,
    cmd.SetTracing: _tracing,
    cmd.Intervene: _intervened,
    cmd.TellBelief: _told_belief,
}
"""What makes up for each kind of command."""

_REWIND = "rewind {at} takes back everything since, with the files"
CANNOT: dict[type[cmd.Command], str] = {
    cmd.Step: f"the action has run; {_REWIND}",
    cmd.CallTool: f"the call has run; {_REWIND}",
    cmd.TakeShell: f"what was done at the shell is done; {_REWIND}",
    cmd.ReturnShell: f"the shell has ended; {_REWIND}",
    cmd.SettleChanges: f"the agent was told; forget BELIEF takes one back, and {_REWIND}",
    cmd.Stop: "what was cut off stays cut off; run lets the agent go on",
    cmd.DropGoal: "a goal that was given up is not taken up again; rewind state {at} brings it back",
    cmd.AbortGoal: "a goal that was given up is not taken up again; rewind state {at} brings it back",
    cmd.HandBack: "the agent has its turn; i takes it again",
    cmd.Guide: "what the thinker was told cannot be unsaid; guide it otherwise",
    cmd.StopJob: "a program that was ended does not go on",
    cmd.CancelBackground: "work that was cut off does not go on",
    cmd.Thaw: "its processes went on; stop freeze freezes them again",
    cmd.RejectReplan: "the thinker was told; accept the plan that it makes now, or replace it",
    cmd.TrustServer: "mcp_distrust SERVER takes the leave back; what the server did is done",
    cmd.DistrustServer: "mcp_trust SERVER lets it start again",
    cmd.WaiveSnapshot: f"the step may have run; {_REWIND}",
}
"""Why other commands are not undone; `{at}` is the event of the command."""
