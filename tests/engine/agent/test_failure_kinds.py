"""One taxonomy: every failure has one kind, whatever its wording, and each kind its strategies."""

from __future__ import annotations

import asyncio
import errno
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.recovery import (
    PATIENCE_S,
    TAXONOMY,
    StrategyChoice,
    StrategyRecord,
    alternative,
    choose_strategy,
    classify,
    code_of,
    kind_of_status,
)
from engine.core.actions import ErrorCode
from engine.core.plan import Op, PlanStep
from engine.core.recovery import FailureKind, Strategy
from engine.models.errors import ModelError, ModelErrorKind, kind_of_model_error
from engine.tools.belief_tool import BeliefTool
from engine.tools.registry import ToolRegistry
from engine.tools.simple_coder_commands import COMMANDS

MINDX = [
    "TOOL_UNAVAILABLE",
    "TOOL_EXECUTION_ERROR",
    "INVALID_PARAMETERS",
    "RATE_LIMIT_ERROR",
    "PERMISSION_ERROR",
    "NETWORK_ERROR",
    "PLANNING_ERROR",
    "GOAL_PARSE_ERROR",
    "UNKNOWN_ERROR",
]
K, S = FailureKind, Strategy
EVERYTHING = frozenset(Strategy)


def test_each_of_mindx_nine_types_is_one_kind_and_each_kind_has_its_answers() -> None:
    assert set(MINDX) <= {kind.value for kind in FailureKind}
    assert set(TAXONOMY) == set(FailureKind)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, K.INVALID_PARAMETERS),
        (401, K.PERMISSION_ERROR),
        (403, K.PERMISSION_ERROR),
        (412, K.DEPENDENCY_NOT_MET),
        (429, K.RATE_LIMIT_ERROR),
        (499, K.CANCELLED),
        (500, K.TOOL_EXECUTION_ERROR),
        (503, K.NETWORK_ERROR),
        (529, K.RATE_LIMIT_ERROR),
        (200, None),
    ],
)
def test_a_status_code_says_the_kind(status: int, kind: FailureKind | None) -> None:
    assert kind_of_status(status) is kind


def test_a_status_code_goes_before_the_error_code_and_nonsense_in_its_place_does_not() -> None:
    assert classify(ErrorCode.INTERNAL, 429) is K.RATE_LIMIT_ERROR
    assert classify(ErrorCode.NETWORK, "429") is K.NETWORK_ERROR
    assert classify(ErrorCode.NETWORK, 200) is K.NETWORK_ERROR


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError("rate limit"), ErrorCode.TIMEOUT),
        (ConnectionResetError("invalid input"), ErrorCode.NETWORK),
        (PermissionError("network"), ErrorCode.PERMISSION),
        (FileNotFoundError("tool not found"), ErrorCode.NOT_FOUND),
        (OSError(errno.ENOSPC, "too many requests"), ErrorCode.NO_SPACE),
        (OSError(errno.EIO, "rate limit"), ErrorCode.INTERNAL),
        (asyncio.CancelledError(), ErrorCode.CANCELLED),
        (KeyError("rate limit"), ErrorCode.INTERNAL),
        (TypeError("permission denied"), ErrorCode.INTERNAL),
    ],
)
def test_the_type_of_an_exception_goes_before_its_words(error: BaseException, code: ErrorCode) -> None:
    """Behaviour 40."""
    assert code_of(error) is code


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("HTTP said: Too Many Requests", ErrorCode.RATE_LIMIT),
        ("Temporary failure in name resolution", ErrorCode.NETWORK),
        ("a tool was not found by parsing invalid json parameters", ErrorCode.INTERNAL),
    ],
)
def test_words_count_only_where_nothing_else_is_known(words: str, code: ErrorCode) -> None:
    assert code_of(RuntimeError(words)) is code


@pytest.mark.parametrize("kind", list(ModelErrorKind))
def test_each_kind_of_model_error_has_one_kind(kind: ModelErrorKind) -> None:
    assert kind_of_model_error(ModelError(kind, "rate limit, permission denied, network")) in FailureKind


def test_what_may_pass_at_a_model_is_asked_again_and_what_may_not_is_not() -> None:
    retried = {
        kind
        for kind in ModelErrorKind
        if (S.RETRY_WITH_DELAY, 5) in TAXONOMY[kind_of_model_error(ModelError(kind, ""))].ladder
        or (S.RETRY_WITH_DELAY, 3) in TAXONOMY[kind_of_model_error(ModelError(kind, ""))].ladder
    }
    assert retried == {
        ModelErrorKind.RATE_LIMIT,
        ModelErrorKind.OVERLOADED,
        ModelErrorKind.SERVER,
        ModelErrorKind.TIMEOUT,
        ModelErrorKind.NETWORK,
    }


# ------------------------------------------------------------------ choosing


def chosen(kind: FailureKind, tried: list[Strategy] | None = None, **rest: Any) -> StrategyChoice:
    given_: dict[str, Any] = {"able": EVERYTHING, "ask": True, **rest}
    return choose_strategy(
        kind,
        tried or [],
        consecutive_errors=1,
        max_consecutive_errors=99,
        randomness=random.Random(1),
        **given_,
    )


def test_the_strategy_with_the_best_rate_comes_first_and_the_ladder_decides_between_equals() -> None:
    kind = K.TOOL_EXECUTION_ERROR
    assert chosen(kind).strategy is S.RETRY_WITH_DELAY
    poor = StrategyRecord({f"{kind}/{S.RETRY_WITH_DELAY}": 0.1})
    assert chosen(kind, learned=poor).strategy is S.SIMPLIFIED_APPROACH
    good = StrategyRecord({f"{kind}/{S.ESCALATE_TO_AGINT}": 0.9})
    assert chosen(kind, learned=good).strategy is S.ESCALATE_TO_AGINT


def test_a_strategy_under_way_is_used_up_before_a_better_one_is_taken() -> None:
    kind, rates = K.TOOL_EXECUTION_ERROR, {f"{K.TOOL_EXECUTION_ERROR}/{S.RETRY_WITH_DELAY}": 0.35}
    again = chosen(kind, [S.RETRY_WITH_DELAY], under_way=S.RETRY_WITH_DELAY, learned=StrategyRecord(rates))
    assert (again.strategy, again.attempt, again.of) == (S.RETRY_WITH_DELAY, 2, 2)


def test_a_strategy_that_failed_lately_rests_until_its_tick() -> None:
    resting = {f"{K.NETWORK_ERROR}/{S.RETRY_WITH_DELAY}": 20}
    before = chosen(K.NETWORK_ERROR, able={S.RETRY_WITH_DELAY}, learned=StrategyRecord({}, resting, 19))
    assert before.strategy is S.FALLBACK_MANUAL
    assert "rests until tick 20" in before.why
    after = chosen(K.NETWORK_ERROR, learned=StrategyRecord({}, resting, 20))
    assert after.strategy is S.RETRY_WITH_DELAY
    other = chosen(K.TOOL_EXECUTION_ERROR, learned=StrategyRecord({}, resting, 19))
    assert other.strategy is S.RETRY_WITH_DELAY


def test_a_wait_that_was_asked_for_is_waited_for_unless_it_is_beyond_bearing() -> None:
    asked = chosen(K.RATE_LIMIT_ERROR, wait_s=90.0)
    assert 90.1 <= asked.delay_s <= 90.5
    assert chosen(K.RATE_LIMIT_ERROR, wait_s=PATIENCE_S + 1).strategy is S.FALLBACK_MANUAL


@given(
    st.sampled_from(FailureKind),
    st.dictionaries(
        st.builds(lambda k, s: f"{k}/{s}", st.sampled_from(FailureKind), st.sampled_from(Strategy)),
        st.floats(0, 1),
    ),
    st.sets(st.sampled_from(Strategy)),
    st.booleans(),
)
def test_whatever_was_learned_every_strategy_is_reached_and_the_ladder_ends(
    kind: FailureKind, rates: dict[str, float], able: set[Strategy], ask: bool
) -> None:
    """Behaviour 44."""
    tried: list[Strategy] = []
    while (
        choice := chosen(kind, tried, able=able, ask=ask, learned=StrategyRecord(rates))
    ).strategy in able - {S.FALLBACK_MANUAL, S.ABORT_GRACEFULLY}:
        tried.append(choice.strategy)
        assert len(tried) <= 10
    assert choice.strategy is (S.FALLBACK_MANUAL if ask else S.ABORT_GRACEFULLY)
    assert {s: tried.count(s) for s in tried} == {s: n for s, n in TAXONOMY[kind].ladder if s in able}


# ------------------------------------------------------------------ alternatives


class _Tool:
    description = "described only"

    def __init__(self, name: str) -> None:
        self.id, self.commands = name, COMMANDS


REGISTRY = ToolRegistry([_Tool("simple_coder"), _Tool("spare"), BeliefTool()])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("command", "args", "code", "other", "with_args"),
    [
        ("read", {"path": "src"}, ErrorCode.WRONG_TYPE, "ls", {"path": "src"}),
        (
            "append",
            {"path": "a", "content": "b"},
            ErrorCode.NOT_FOUND,
            "write",
            {"path": "a", "content": "b"},
        ),
        ("run", {"command": "python a.py -v"}, ErrorCode.NOT_ALLOWED, "run", {"command": "python3 a.py -v"}),
        ("run", {"command": ["python3", "a b"]}, ErrorCode.NOT_FOUND, "run", {"command": ["python", "a b"]}),
        (
            "start",
            {"command": ["pip", "list"]},
            ErrorCode.NOT_FOUND,
            "start",
            {"command": ["python", "-m", "pip", "list"]},
        ),
    ],
)
def test_another_call_stands_for_one_that_cannot_be_made(
    command: str, args: dict[str, Any], code: ErrorCode, other: str, with_args: dict[str, Any]
) -> None:
    found = alternative(PlanStep("s1", "", tool="simple_coder", command=command, args=args), code, REGISTRY)
    assert found is not None
    assert (found.tool, found.command, found.args) == ("simple_coder", other, with_args)
    assert not REGISTRY.validate(found.tool, found.command, found.args)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (PlanStep("s1", "", tool="simple_coder", command="read", args={"path": "a"}), ErrorCode.NOT_FOUND),
        (PlanStep("s1", "", tool="simple_coder", command="rm", args={"path": "a"}), ErrorCode.NOT_ALLOWED),
        (
            PlanStep("s1", "", tool="simple_coder", command="run", args={"command": "curl x"}),
            ErrorCode.NOT_ALLOWED,
        ),
        (
            PlanStep("s1", "", tool="simple_coder", command="run", args={"command": "python x"}),
            ErrorCode.EXIT_STATUS,
        ),
        (PlanStep("s1", "", tool="simple_coder", command="run", args={"command": [[]]}), ErrorCode.NOT_FOUND),
        (PlanStep("s1", "", tool="gone", command="shell"), ErrorCode.UNKNOWN_TOOL),
        (PlanStep("s1", "", tool="gone", command="read", args={"wrong": 1}), ErrorCode.UNKNOWN_TOOL),
        (PlanStep("s1", "", op=Op.TEST, args={"key": "a"}), ErrorCode.NOT_FOUND),
    ],
)
def test_nothing_stands_for_a_call_that_would_mean_something_else(step: PlanStep, code: ErrorCode) -> None:
    """Behaviour 42."""
    assert alternative(step, code, REGISTRY) is None


def test_only_a_tool_that_has_the_command_and_takes_the_arguments_stands_for_one_that_is_gone() -> None:
    """Behaviour 42."""
    step = PlanStep("s1", "", tool="gone", command="read", args={"path": "a"})
    found = alternative(step, ErrorCode.UNKNOWN_TOOL, REGISTRY)
    assert found is not None
    assert (found.tool, found.command, found.args) == ("simple_coder", "read", {"path": "a"})
