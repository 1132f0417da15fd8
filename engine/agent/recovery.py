"""Failures: their kinds, the strategies that answer each, stand-in calls, and which calls may be repeated.

A status code or an error code says the kind by itself; what a tool raises is put under an error code by its
type, and words are looked at only where the type says nothing. Another call stands in only where the first
did nothing and the second means the same. A connection that breaks says nothing about its call: a read may be
repeated, a write only where it carries a key by which its receiver knows it again.

Each kind has a ladder: strategies with the tries allowed of each. A strategy under way is used up first. Then
comes the one with the best success rate so far, in the ladder's order where rates are equal. As each has few
tries, an untried strategy is always reached in the end and none is locked in, as it was in mindX. A strategy
that was used up without success rests for some ticks. Below all of them stands the operator, or the goal is
aborted where nobody is there.
"""

from __future__ import annotations

import asyncio
import errno
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from engine.core.actions import ErrorCode as Code
from engine.core.plan import Op, PlanStep
from engine.core.ports import CommandSpec, Randomness
from engine.core.reasons import Reason
from engine.core.recovery import UNTRIED_RATE, Strategy, rate_key
from engine.core.recovery import FailureKind as Kind
from engine.tools.registry import ToolRegistry
from engine.value import dataclass, field


@dataclass(frozen=True, slots=True)
class Alternative:
    """A call in place of one that failed."""

    tool: str
    command: str
    args: dict[str, Any]
    why: str
    """What stands for what, in words."""


_COMMANDS: Mapping[tuple[str, Code], str] = {
    ("append", Code.NOT_FOUND): "write",
    ("read", Code.WRONG_TYPE): "ls",
}
"""A command and how it failed, to the command that fits what is there."""

_PROGRAMS: Mapping[str, str] = {
    "python": "python3",
    "python3": "python",
    "pip": "python -m pip",
    "pip3": "python3 -m pip",
}
_RUNNERS = frozenset({"run", "start"})
_NO_SUCH = frozenset({Code.UNKNOWN_TOOL, Code.UNKNOWN_COMMAND})
_NO_PROGRAM = frozenset({Code.NOT_FOUND, Code.NOT_ALLOWED})


def alternative(step: PlanStep, code: Code, registry: ToolRegistry) -> Alternative | None:
    """Another call for a failed step, with arguments that are valid; None when there is none.

    Args:
        step: the step that failed.
        code: how it failed.
        registry: what can be called.
    """
    if step.op is not Op.ACT:
        return None
    alternatives: list[Alternative] = []
    if code in _NO_SUCH:
        tools = [tool.id for tool in registry if tool.id != step.tool and step.command in tool.commands]
        alternatives = [
            Alternative(tool, step.command, step.args, f"{tool} for {step.tool}") for tool in tools
        ]
    elif other := _COMMANDS.get((step.command, code)):
        alternatives = [Alternative(step.tool, other, step.args, f"{other} for {step.command}")]
    elif step.command in _RUNNERS and code in _NO_PROGRAM and (program := _other_program(step)):
        alternatives = [program]
    return next((fitted for each in alternatives if (fitted := _fitted(each, registry))), None)


def _other_program(step: PlanStep) -> Alternative | None:
    """The same program under its other name; a command keeps its form, a line or a list of words."""
    command = step.args.get("command")
    words = command.split(maxsplit=1) if isinstance(command, str) else command
    if not isinstance(words, list) or not words or str(words[0]) not in _PROGRAMS:
        return None
    other = _PROGRAMS[words[0]]
    line = isinstance(command, str)
    changed = " ".join([other, *words[1:]]) if line else [*shlex.split(other), *words[1:]]
    return Alternative(step.tool, step.command, {**step.args, "command": changed}, f"{other} for {words[0]}")


def _fitted(matches: Alternative, registry: ToolRegistry) -> Alternative | None:
    """The call with those of the arguments that its command takes; None when it could not be made."""
    if matches.tool not in registry or matches.command not in registry.get(matches.tool).commands:
        return None
    spec = registry.get(matches.tool).commands[matches.command]
    taken = {parameter.name for parameter in spec.parameters}
    args = {name: value for name, value in matches.args.items() if name in taken}
    if spec.operator_only or registry.validate(matches.tool, matches.command, args):
        return None
    return Alternative(matches.tool, matches.command, args, matches.why)


_KINDS: Mapping[Code, Kind] = {
    **dict.fromkeys((Code.UNKNOWN_TOOL, Code.UNKNOWN_COMMAND), Kind.TOOL_UNAVAILABLE),
    **dict.fromkeys((Code.BAD_ARGUMENTS, Code.NOT_FOUND, Code.WRONG_TYPE), Kind.INVALID_PARAMETERS),
    **dict.fromkeys((Code.EXISTS, Code.TOO_LARGE, Code.NOT_TEXT), Kind.INVALID_PARAMETERS),
    **dict.fromkeys((Code.OUTSIDE_ROOT, Code.NOT_ALLOWED, Code.PERMISSION), Kind.PERMISSION_ERROR),
    **dict.fromkeys((Code.EXIT_STATUS, Code.TIMEOUT, Code.NO_SPACE), Kind.TOOL_EXECUTION_ERROR),
    Code.NETWORK: Kind.NETWORK_ERROR,
    Code.RATE_LIMIT: Kind.RATE_LIMIT_ERROR,
    Code.CANCELLED: Kind.CANCELLED,
    Code.INTERNAL: Kind.UNKNOWN_ERROR,
}
_STATUSES: Mapping[int, Kind] = {
    **dict.fromkeys((401, 402, 403, 407, 451), Kind.PERMISSION_ERROR),
    **dict.fromkeys((408, 502, 503, 504), Kind.NETWORK_ERROR),
    **dict.fromkeys((412, 424), Kind.DEPENDENCY_NOT_MET),
    **dict.fromkeys((429, 529), Kind.RATE_LIMIT_ERROR),
    499: Kind.CANCELLED,
    501: Kind.TOOL_UNAVAILABLE,
}
"""HTTP's statuses, and of the master loop 412 and 499."""


_TYPES: tuple[tuple[type[BaseException], Code], ...] = (
    (asyncio.CancelledError, Code.CANCELLED),
    (TimeoutError, Code.TIMEOUT),
    (ConnectionError, Code.NETWORK),
    (PermissionError, Code.PERMISSION),
    (FileNotFoundError, Code.NOT_FOUND),
    (FileExistsError, Code.EXISTS),
    (IsADirectoryError, Code.WRONG_TYPE),
    (NotADirectoryError, Code.WRONG_TYPE),
    (UnicodeError, Code.NOT_TEXT),
)
_ERRNOS: Mapping[int, Code] = {
    errno.ENOSPC: Code.NO_SPACE,
    errno.EDQUOT: Code.NO_SPACE,
    errno.EFBIG: Code.TOO_LARGE,
    errno.EROFS: Code.PERMISSION,
    errno.ENETUNREACH: Code.NETWORK,
    errno.ENETDOWN: Code.NETWORK,
    errno.EHOSTUNREACH: Code.NETWORK,
}
_WORDS: tuple[tuple[str, Code], ...] = (
    ("rate limit", Code.RATE_LIMIT),
    ("too many requests", Code.RATE_LIMIT),
    ("permission denied", Code.PERMISSION),
    ("access denied", Code.PERMISSION),
    ("timed out", Code.TIMEOUT),
    ("connection refused", Code.NETWORK),
    ("connection reset", Code.NETWORK),
    ("name resolution", Code.NETWORK),
    ("no space left", Code.NO_SPACE),
)


def classify(code: Code, status: object = None) -> Kind:
    """The one failure kind of what a tool answered.

    Args:
        code: the answer's error code.
        status: the status code that came with it, if it is one; it says more than the code.
    """
    return (kind_of_status(status) if isinstance(status, int) else None) or _KINDS[code]


def kind_of_status(status: int) -> Kind | None:
    """The failure kind of an HTTP status; None when it is no failure."""
    if status in _STATUSES:
        return _STATUSES[status]
    if 400 <= status < 500:
        return Kind.INVALID_PARAMETERS
    return Kind.TOOL_EXECUTION_ERROR if 500 <= status < 600 else None


def code_of(error: BaseException) -> Code:
    """The error code of an exception: by its type, its number, and only then by what it says."""
    for known, code in _TYPES:
        if isinstance(error, known):
            return code
    if isinstance(error, OSError):
        return _ERRNOS.get(error.errno or 0, Code.INTERNAL)
    if isinstance(error, ArithmeticError | AssertionError | AttributeError | LookupError | TypeError):
        return Code.INTERNAL
    text = str(error)[:2_000].casefold()
    return next((code for words, code in _WORDS if words in text), Code.INTERNAL)


IDEMPOTENCY_KEY = "idempotency_key"
"""The argument by which a write is known again."""


def may_have_taken_effect(kind: Kind) -> bool:
    """Whether a failure of this kind leaves open if the call took effect.

    A program that ran and ended, and an endpoint that asks for patience, have answered.
    """
    return kind is Kind.NETWORK_ERROR


def may_repeat(spec: CommandSpec, args: Mapping[str, Any]) -> bool:
    """Whether a call does no harm when it is made a second time.

    Args:
        spec: what the command is.
        args: its arguments, as they were sent.
    """
    return not (spec.mutates or spec.writes) or bool(args.get(IDEMPOTENCY_KEY))


@dataclass(frozen=True, slots=True)
class FailureHandling:
    """What answers a kind of failure."""

    ladder: tuple[tuple[Strategy, int], ...] = ()
    """Strategies that may answer it, with the tries of each; below all ladders stands the operator."""
    advice: str = ""
    """What a thinker is told that plans around it."""


_RETRY, _OTHER = Strategy.RETRY_WITH_DELAY, Strategy.ALTERNATIVE_TOOL
_REPLANS = ((Strategy.SIMPLIFIED_APPROACH, 2), (Strategy.ESCALATE_TO_AGINT, 1))
_REPLANS_ONCE = ((Strategy.SIMPLIFIED_APPROACH, 1), (Strategy.ESCALATE_TO_AGINT, 1))
TAXONOMY: Mapping[Kind, FailureHandling] = {
    Kind.TOOL_UNAVAILABLE: FailureHandling(
        ((_OTHER, 1), *_REPLANS), "Use another tool or command that can do the same."
    ),
    Kind.TOOL_EXECUTION_ERROR: FailureHandling(
        ((_RETRY, 2), *_REPLANS),
        "Read what the program said: mend its cause first, or use other arguments or another command.",
    ),
    Kind.INVALID_PARAMETERS: FailureHandling(
        ((_OTHER, 1), *_REPLANS),
        "Check the arguments against the command's schema and against what is really there.",
    ),
    Kind.RATE_LIMIT_ERROR: FailureHandling(((_RETRY, 5),), "Ask less often."),
    Kind.PERMISSION_ERROR: FailureHandling(
        ((_OTHER, 1),), "Do without what is refused; the policy cannot be changed."
    ),
    Kind.NETWORK_ERROR: FailureHandling(
        ((_RETRY, 3), *_REPLANS), "Do without the service that cannot be reached."
    ),
    Kind.PLANNING_ERROR: FailureHandling(
        _REPLANS_ONCE, "Put right what is wrong with the plan, its steps and what they wait for."
    ),
    Kind.GOAL_PARSE_ERROR: FailureHandling(
        _REPLANS_ONCE, "Cover every part of the goal, or say what is missing."
    ),
    Kind.GOAL_MANAGEMENT_ERROR: FailureHandling(),
    Kind.DEPENDENCY_NOT_MET: FailureHandling(),
    Kind.CANCELLED: FailureHandling(),
    Kind.UNKNOWN_ERROR: FailureHandling(_REPLANS_ONCE, "Choose simpler steps."),
}
"""What answers each kind: mindX's nine failure types, and the master loop's errors that mindX lacks."""


def tries_of(kind: Kind, strategy: Strategy) -> int:
    """How often a strategy may be tried against a kind of failure; 0 when it is no answer to it."""
    return dict(TAXONOMY[kind].ladder).get(strategy, 0)


RETRY_BASE_S = 1.0
"""Delay before the first retry; it doubles with each (backoff of the master loop: 2^(k-1) s)."""
RETRY_CAP_S = 30.0
JITTER_S = (0.1, 0.5)
PATIENCE_S = 3_600.0
"""Longest wait that an endpoint may ask for; beyond it the operator decides."""
REST_TICKS = 10
"""Ticks for which a strategy that was used up in vain is not chosen for that kind."""

_RETRY_ONLY = frozenset({Strategy.RETRY_WITH_DELAY})
_WHY: Mapping[Strategy, Reason] = {
    Strategy.ALTERNATIVE_TOOL: Reason("recovery.other-call"),
    Strategy.SIMPLIFIED_APPROACH: Reason("recovery.replan"),
    Strategy.ESCALATE_TO_AGINT: Reason("recovery.escalate"),
}


@dataclass(frozen=True, slots=True)
class StrategyRecord:
    """What an agent knows of its strategies at one tick."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """`KIND/STRATEGY` to its success rate from 0 to 1."""
    resting: Mapping[str, int] = field(default_factory=dict)
    """`KIND/STRATEGY` to the tick until which it is not chosen."""
    tick: int = 0

    def rate(self, kind: Kind, strategy: Strategy) -> float:
        """The success rate so far, from 0 to 1."""
        return self.rates.get(rate_key(kind, strategy), UNTRIED_RATE)

    def rests(self, kind: Kind, strategy: Strategy) -> int:
        """The tick until which the strategy is not chosen; 0 when it may be."""
        until = self.resting.get(rate_key(kind, strategy), 0)
        return until if until > self.tick else 0


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """A strategy for one failure."""

    strategy: Strategy
    attempt: int
    of: int
    delay_s: float
    why: Reason


def choose_strategy(
    kind: Kind,
    tried: Sequence[Strategy],
    *,
    consecutive_errors: int,
    max_consecutive_errors: int,
    ask: bool,
    randomness: Randomness,
    able: Collection[Strategy] = _RETRY_ONLY,
    under_way: Strategy | None = None,
    learned: StrategyRecord | None = None,
    wait_s: float | None = None,
) -> StrategyChoice:
    """The next strategy for something that failed.

    Args:
        kind: what went wrong.
        tried: strategies already tried on this step and on its goal's plan.
        consecutive_errors: failures in a row of the agent, this one included.
        max_consecutive_errors: from this many on, the operator decides.
        ask: False when nobody will answer.
        randomness: for the jitter of delays.
        able: what can be done here at all.
        under_way: what was tried last on this very step or plan.
        learned: success rates and rests.
        wait_s: seconds that whoever failed asked to wait.
    """
    learned = learned or StrategyRecord()
    exhausted = consecutive_errors >= max_consecutive_errors
    left = [] if exhausted else [s for s in _left(kind, tried, wait_s) if s in able]
    ready = [strategy for strategy in left if not learned.rests(kind, strategy)]
    if ready:
        # `max` takes the first of equals, so the ladder's order decides between equal rates.
        chosen = under_way if under_way in ready else max(ready, key=lambda s: learned.rate(kind, s))
        done = tried.count(chosen)
        delay = 0.0
        if chosen is Strategy.RETRY_WITH_DELAY:
            delay = max(min(RETRY_BASE_S * 2**done, RETRY_CAP_S), wait_s or 0.0)
            delay = round(delay + randomness.uniform(*JITTER_S), 3)
        why = _WHY.get(chosen) or Reason("recovery.may-pass", failure=kind.value)
        return StrategyChoice(chosen, done + 1, tries_of(kind, chosen), delay, why)
    why = Reason("recovery.no-way", failure=kind.value)
    if exhausted:
        why = Reason("recovery.in-a-row", errors=consecutive_errors)
    elif left:
        resting = {"strategy": left[0].value, "tick": learned.rests(kind, left[0])}
        why = Reason("recovery.rests", failure=kind.value, **resting)
    if ask:
        return StrategyChoice(Strategy.FALLBACK_MANUAL, 1, 1, 0.0, why)
    return StrategyChoice(Strategy.ABORT_GRACEFULLY, 1, 1, 0.0, Reason("recovery.nobody", why=why))


def _left(kind: Kind, tried: Sequence[Strategy], wait_s: float | None) -> list[Strategy]:
    """Strategies of the ladder with tries left; nobody waits longer than is bearable."""
    patient = wait_s is None or wait_s <= PATIENCE_S
    return [
        strategy
        for strategy, tries in TAXONOMY[kind].ladder
        if tried.count(strategy) < tries and (patient or strategy is not Strategy.RETRY_WITH_DELAY)
    ]
