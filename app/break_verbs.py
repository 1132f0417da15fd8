"""The words of the command bar for breakpoints and steps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Local, Verb, only, split_word, word
from engine.domain import commands as cmd
from engine.domain.break_lines import USAGE, BreakError, read_break
from engine.domain.breakpoints import BreakKind
from engine.domain.failure import FailureKind

ON_MIND = ("step", "belief", "goal", "plan", "error")
"""Kinds that of a reasoner are patterns over what its program does."""
SWITCHES = ("on", "off", "clear")
SCOPES = ("over", "out")


def step_id(rest: str, context: Context) -> str:
    """A step's id; `this` or nothing means the step that would run next.

    Raises:
        GrammarError: none is named, and none is pending.
    """
    state = context.state
    if rest in ("", "this", "."):
        if state is None or state.step is None:
            raise GrammarError("a step is missing, and no step is pending")
        return state.step.id
    return rest.lower() if rest[0] in "sS" else f"s{rest}"


def break_command(rest: str, context: Context) -> cmd.Command:
    """A breakpoint of any kind: on a step alone, on a reasoner's mind, or any other.

    Raises:
        GrammarError: it is none; the message says what is wrong and how to write it.
    """
    kind, _, tail = split_word(rest)
    reasons = context.state is not None and context.state.reasons
    if kind not in set(BreakKind):
        if reasons or not re.fullmatch(r"[sS]?\d*|this|\.", rest):
            kinds = ", ".join(BreakKind)
            raise GrammarError(f"say on what: {kinds}, such as: break error *; or name a step")
        return cmd.SetBreakpoint(agent=context.agent, step=step_id(rest, context))
    pattern = tail.strip()
    if reasons and kind in ON_MIND and not (kind == BreakKind.ERROR and is_failure(pattern)):
        if not pattern:
            raise GrammarError("say on what: break belief obstacle(_), break goal +!reach(X), break plan p1")
        return cmd.BreakOn.model_validate({"agent": context.agent, "on": kind, "pattern": pattern})
    if kind == BreakKind.STEP and re.fullmatch(r"[sS]\d+|this|\.", pattern):
        step = step_id(pattern, context)
        if context.state is not None and context.state.find_step(step) is not None:
            return cmd.SetBreakpoint(agent=context.agent, step=step)
    try:
        read_break(f"{kind} {pattern}")
    except BreakError as error:
        raise GrammarError(str(error)) from None
    return cmd.SetBreak(agent=context.agent, line=f"{kind} {pattern}".strip())


def is_failure(pattern: str) -> bool:
    """Whether a pattern of an error means kinds of failures, and not ids of a reasoner's errors."""
    first = pattern.split(" ", 1)[0].rstrip("*")
    return bool(first) and any(kind.startswith(first) for kind in FailureKind)


def _read_break(rest: str, context: Context) -> Intent:
    first, _, tail = split_word(rest)
    if first == "dry":
        if not tail.strip():
            raise GrammarError("say what: break dry error *, break dry belief tests_green true->false")
        return Local("break_dry", tail.strip())
    if first in SWITCHES:
        return _switch(only(tail, "a breakpoint"), first, context)
    return break_command(rest, context)


def _switch(ident: str, how: str, context: Context) -> cmd.Command:
    return cmd.ChangeBreak(
        agent=context.agent, breakpoint=ident, enabled=how != "off", cleared=how == "clear"
    )


def _read_breaks(rest: str, context: Context) -> Intent:
    if not rest:
        return Local("breakpoints")
    ident, how = word(rest, "a breakpoint")
    if how not in SWITCHES:
        raise GrammarError("say what is to become of it: on, off or clear")
    return _switch(ident, how, context)


def _read_unbreak(rest: str, context: Context) -> Intent:
    if re.fullmatch(r"b\d+", rest):
        return _switch(rest, "clear", context)
    return cmd.SetBreakpoint(agent=context.agent, step=step_id(rest, context), on=False)


def _read_step(rest: str, context: Context) -> Intent:
    first, _, scope = split_word(rest)
    if first == "all" and scope.strip() in ("", *SCOPES):
        return Local("step_all", scope.strip() or "step")
    if rest not in ("", *SCOPES):
        raise GrammarError("nothing, over or out may follow, or all for every paused agent")
    return cmd.Step.model_validate({"agent": context.agent, "scope": rest or "step"})


def _set_ones(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    if state is None:
        return
    known = [(one.id, one.enabled) for one in state.mind_breakpoints.values()]
    known += [(one.id, one.enabled) for one in state.points.values()]
    for ident, enabled in known:
        yield f"{ident} {'off' if enabled else 'on'}", ""
        yield f"{ident} clear", ""
    for step in state.breakpoints:
        yield f"{step} clear", "on a step"


def _breakable(context: Context) -> Iterable[tuple[str, str]]:
    state = context.state
    steps = list(_steps(context))
    yield from steps[:1]
    for kind, (usage, what, example) in USAGE.items():
        if kind is not BreakKind.INTENTION or (state is not None and state.reasons):
            yield f"{kind} ", f"{usage}: {what}, such as {kind} {example}"
    yield "dry ", "how often one would have held the agent: dry KIND … [last N]"
    yield from steps[1:]


def _steps(context: Context) -> Iterable[tuple[str, str]]:
    plan = context.state.plan if context.state else None
    return [(step.id, step.description) for step in plan.steps if not step.status.terminal] if plan else []


VERBS: tuple[Verb, ...] = (
    Verb("step", "step [over|out] | step all [over|out]", "allow exactly one action, the pending step with "
         "all below it, or the rest of its goal; all: of every paused agent", _read_step, "Steering",
         choices=lambda c: [("over", "the pending step and all below it"), ("out", "the rest of its goal"),
                            ("all", "one action of every paused agent")]),
    Verb("break", "break [STEP] | break KIND … [when CONDITION] [after N] [once] | break dry KIND … [last N]",
         "hold the agent there; dry: how often that would have been", _read_break, "Steering",
         choices=_breakable),
    Verb("breaks", "breaks [ID on|off|clear]", "the breakpoints: what they watch for, how often they came",
         _read_breaks, "Steering", choices=_set_ones),
    Verb("unbreak", "unbreak [STEP|ID]", "clear a breakpoint", _read_unbreak, "Steering", choices=_steps),
)  # fmt: skip
