"""Breakpoints on beliefs, goals, plans, errors and intentions (spec §5, §7: 60)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bdi.agent import BdiAgent
from engine.bdi.breakpoints import LONGEST, Breakpoint, Breakpoints, Kind
from engine.bdi.intentions import Phase
from engine.bdi.parser import parse_literal, parse_program
from engine.bdi.terms import Struct
from engine.bdi.trace import BeliefAdded, EventQueued, TraceEvent
from tests.engine.bdi.running import Run

EXPLORER = """
@approach +!reach(O) : there_is(O, D) <- .print(D).
@search[breakpoint] +!reach(O) <- +obstacle(north)[seen(1)]; !look(X); -obstacle(north).
+!look(3) : ready.
-!look(X)[error(E)] <- X = 3.
+obstacle(D) : D == west <- .print(never).
"""


def words(kind: str, pattern: str, program: str = EXPLORER + "!reach(home).") -> list[str]:
    """What an operator is told of a run, apart from what labels say."""
    run = Run(program, traced=True).end()
    places = Breakpoints([Breakpoint(Kind(kind), pattern)])
    return [hit.words for hit in places.hits(run.trace) if hit.breakpoint is not None]


ADDED = "belief +obstacle(north)[seen(1),source(self)] was added"
REMOVED = "belief -obstacle(north)[source(self)] was removed"
REACH = "goal +!reach(home) was adopted"
LOOK = "goal +!look(_) was adopted"
FAILED = "goal !look(_) failed with no_applicable: no plan for +!look(_) applies now"
SEARCH = "plan search was selected for +!reach(home)"


@pytest.mark.parametrize(
    ("kind", "pattern", "told"),
    [
        ("belief", "obstacle(_)", [ADDED, REMOVED]),
        ("belief", "+obstacle(north)", [ADDED]),
        ("belief", "  + obstacle(X)  ", [ADDED]),
        ("belief", "-obstacle(_)", [REMOVED]),
        ("belief", "obstacle(south)", []),
        ("belief", "obstacle", []),
        ("belief", "obstacl(_)", []),
        ("belief", "~obstacle(_)", []),
        ("belief", "obstacle(_)[seen(N)]", [ADDED]),
        ("belief", "obstacle(_)[source(bob)]", []),
        ("belief", "X", [ADDED, REMOVED]),
        ("belief", "_[seen(1)]", [ADDED]),
        ("belief", "-_", [REMOVED]),
        ("goal", "reach(X)", [REACH]),
        ("goal", "+!reach(home)", [REACH]),
        ("goal", "+!reach(_)[source(self)]", [REACH]),
        ("goal", "+?reach(_)", []),
        ("goal", "look(7)", [LOOK]),
        ("goal", "-!look(_)", [FAILED]),
        ("goal", "-?look(_)", []),
        ("goal", "+!_", [REACH, LOOK]),
        ("plan", "search", [SEARCH]),
        ("plan", "@sea*", [SEARCH]),
        ("plan", "approach", []),
        ("plan", "[", []),
        ("error", "no_applicable", [FAILED]),
        ("error", "*", [FAILED]),
        ("error", "wait_timeout", []),
        ("intention", "1", ["intention 1 was finished"]),
        ("intention", "1 created", ["intention 1 was created"]),
        ("intention", "* updated", ["intention 1 was updated"] * 2),
        ("intention", "2", []),
    ],
)
def test_an_operator_is_told_what_came_to_a_breakpoint(kind: str, pattern: str, told: list[str]) -> None:
    """Checklist 60: plan label, event pattern, belief pattern, error id, and the end of an intention."""
    assert words(kind, pattern) == told


def test_a_host_can_hold_before_the_event_is_handled_and_before_the_step_runs() -> None:
    """Checklist 60: by phase."""
    trace: list[TraceEvent] = []
    agent = BdiAgent("ag", parse_program(EXPLORER), tracer=trace.append)
    places = Breakpoints([Breakpoint(Kind.GOAL, "reach(_)"), Breakpoint(Kind.PLAN, "search")])
    agent.achieve(parse_literal("reach(home)"))
    assert [hit.words for hit in places.hits(trace)] == [REACH]
    assert agent.phase is Phase.SENSE
    held = []
    while not held:
        trace.clear()
        agent.advance()
        held = places.hits(trace)
    assert agent.phase is Phase.ACT
    assert [(hit.breakpoint is None, hit.words) for hit in held] == [
        (True, "plan search, labelled [breakpoint], was selected for +!reach(home)"),
        (False, SEARCH),
    ]
    assert not len(agent.beliefs)


def test_a_plan_with_the_label_breakpoint_holds_without_any_breakpoint_set() -> None:
    """Checklist 60."""
    run = Run(EXPLORER + "!reach(home).", traced=True).end()
    (hit,) = Breakpoints().hits(run.trace)
    assert (hit.breakpoint, hit.words) == (
        None,
        "plan search, labelled [breakpoint], was selected for +!reach(home)",
    )


def test_an_error_without_a_goal_is_told_once_and_of_the_intention() -> None:
    program = "!s. +!s <- +b; .wait(5). @b +b <- break(tired)."
    nested = Run("!s. +!s <- !t. +!t <- break(tired).", traced=True).end()
    places = Breakpoints([Breakpoint(Kind.ERROR, "action_failed")])
    assert [hit.words for hit in places.hits(nested.trace)] == [
        "goal !t failed with action_failed: tired",
        "goal !s failed with action_failed: tired",
    ]
    assert words("error", "action_failed", program) == ["goal !s failed with action_failed: tired"]
    agent = Run("@b +b <- break(tired).", traced=True)
    agent.agent.perceive([parse_literal("b")])
    agent.end()
    assert [hit.words for hit in places.hits(agent.trace)] == ["intention 1 failed with action_failed: tired"]


@pytest.mark.parametrize(
    ("kind", "pattern", "problem"),
    [
        ("belief", "", "say which belief, for example obstacle(_) or +obstacle(north)"),
        ("belief", "  ", "say which belief"),
        ("belief", "obstacle(", "not a belief: expected a term, found the end of the text at character 10"),
        ("belief", "obstacle(a b)", "not a belief: expected ',' or ')', found 'b' at character 12"),
        ("belief", "p(1). q(2)", "not a belief: expected the end of the text, found 'q' at character 7"),
        ("belief", "7", "7 is not a literal"),
        ("belief", "[a]", "[a] is not a literal"),
        ("belief", "p & q", "p & q is not a literal"),
        ("belief", "+!g", "a belief begins with one of +, - or with its name, not with +!"),
        ("belief", "p\n(1", "in line 2"),
        ("belief", "\x1b[31m", "the character '\\x1b'"),
        ("belief", "f(" * 500, "at most 100 levels"),
        ("belief", "p" * (LONGEST + 1), "a pattern has at most 1000 characters, not 1001"),
        ("goal", "+b(1)", "a goal begins with one of +!, -!, +?, -? or with its name, not with +"),
        ("goal", "^!g[state(failed)]", "not with ^!"),
        ("goal", "+!", "not a goal: expected a goal, found the end of the text at character 3"),
        ("plan", "@", "say which plan, for example approach"),
        ("error", "no_aplicable", "there is no error no_aplicable; did you mean no_applicable"),
        ("error", "x", "there are no_relevant, no_applicable"),
        ("intention", "seven", "expected the number of an intention or *"),
        ("intention", "7 8 9", "expected the number of an intention or *"),
        ("intention", "٧", "expected the number of an intention or *"),
        ("intention", "7 sleeps", "intentions are created, updated, suspended, resumed, dropped, finished"),
        ("mood", "good", "a breakpoint is on a belief, goal, plan, error, intention, not on a mood"),
    ],
)
def test_a_pattern_that_is_none_is_refused_with_what_was_expected(
    kind: Kind, pattern: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Breakpoint(kind, pattern)
    assert problem in str(caught.value)


@given(st.sampled_from(sorted(Kind)), st.text(max_size=40))
def test_whatever_is_typed_is_a_breakpoint_or_a_value_error(kind: Kind, pattern: str) -> None:
    try:
        places = Breakpoints([Breakpoint(kind, pattern)])
    except ValueError:
        return
    places.hits(Run(EXPLORER + "!reach(home).", traced=True).end(20).trace)


def test_what_cannot_be_read_back_holds_rather_than_passes_by() -> None:
    deep = Struct("a")
    for _ in range(5_000):
        deep = Struct("f", (deep,))
    agent = BdiAgent("ag", parse_program("+g(X)."), tracer=(trace := list[TraceEvent]()).append)
    agent.perceive([Struct("deep", (deep,)), Struct("other", (deep,))])
    agent.cycle()
    places = Breakpoints([Breakpoint(Kind.BELIEF, "deep(1)"), Breakpoint(Kind.GOAL, "deep(1)")])
    assert [type(hit.record) for hit in places.hits(trace)] == [BeliefAdded]


def test_a_functor_that_only_begins_alike_is_another() -> None:
    trace: list[TraceEvent] = [
        BeliefAdded("ag", 1, text) for text in ("ab(1)", "a.b(1)", "a[source(x)]", "a", "'a('(1)", "~a")
    ]
    places = Breakpoints([Breakpoint(Kind.BELIEF, pattern) for pattern in ("a", "'a('(X)", "~a")])
    assert [hit.record.belief for hit in places.hits(trace) if isinstance(hit.record, BeliefAdded)] == [
        "a[source(x)]",
        "a",
        "'a('(1)",
        "~a",
    ]


def test_shared_variables_of_a_pattern_must_agree() -> None:
    trace: list[TraceEvent] = [EventQueued("ag", 1, text, 0) for text in ("+!g(1,2)", "+!g(2,2)", "+!g(_,2)")]
    hits = Breakpoints([Breakpoint(Kind.GOAL, "g(X,X)")]).hits(trace)
    assert [hit.record for hit in hits] == trace[1:]
