"""The cycle, its selection functions, and what waits (spec §1.5, §1.6)."""

from __future__ import annotations

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.parser import parse_literal, parse_program
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.trace import EventSelected, OptionConsidered, PlanSelected, StepRun
from tests.engine.bdi.corpus import FOCUS, LOOPS, ROUND_ROBIN, UNNAMED, WAITING
from tests.engine.bdi.running import Run, said


def test_a_cycle_handles_one_event_and_runs_one_step() -> None:
    """Checklist 14."""
    run = Run("!a. !b. +!a <- .print(1); .print(2). +!b <- .print(3); .print(4).", traced=True).end()
    for kind in (EventSelected, StepRun):
        cycles = [one.cycle for one in run.of(kind)]
        assert cycles == sorted(set(cycles))
    assert len(run.of(StepRun)) == 4


def test_intentions_take_turns_and_atomic_plans_are_not_interleaved() -> None:
    """Checklist 15 and 16."""
    told = said(ROUND_ROBIN)
    ticks = [told.index(f"tick{number}") for number in (1, 2, 3)]
    assert ticks == [ticks[0], ticks[0] + 1, ticks[0] + 2]
    places = {name: [told.index(f"{name}{number}") for number in range(6, 0, -1)] for name in "ab"}
    assert abs(places["a"][-1] - places["b"][-1]) == 1


def test_the_first_applicable_plan_in_the_order_of_the_program_wins() -> None:
    """Checklist 15."""
    assert said("b. !s. +!s : c <- .print(1). +!s : b <- .print(2). +!s <- .print(3).") == ["2"]


def test_a_spawned_goal_does_not_delay_its_caller() -> None:
    """Checklist 18."""
    assert said("!s. +!s <- !!g; .print(next). +!g <- .print(g).") == ["next", "g"]
    assert said("!s. +!s <- !g; .print(next). +!g <- .print(g).") == ["g", "next"]


def test_bindings_return_and_the_callees_variables_stay_inside() -> None:
    """Checklist 19."""
    assert said(UNNAMED) == ["6", "_"]


def test_loops_leave_their_variables_free_and_branches_do_not() -> None:
    """Checklist 19."""
    assert said(LOOPS) == ["sum 6", "freealso", "zero", "1-2", "1-3", "2-1", "2-3", "10"]


def test_a_variable_from_outside_is_free_again_in_each_round() -> None:
    program = "p(1). p(2). !s. +!s <- if (a) { V = 0 }; for (p(X)) { V = X; .print(V) }; V = end; .print(V)."
    assert said(program) == ["1", "2", "end"]


def test_a_belief_event_is_handled_before_the_next_step_unless_set_otherwise() -> None:
    """Checklist 20."""
    assert said(FOCUS) == ["added(1)", "still", "after", "removed(1)", "last"]
    apart = said(FOCUS, semantics=Semantics(same_focus=False))
    assert apart.index("after") < apart.index("still")


def test_a_hundred_thousand_nested_goals_run() -> None:
    program = "!count(100000). +!count(0) <- .print(end). +!count(N) : N > 0 <- !count(N - 1)."
    run = Run(program)
    assert run.system.run(200_000) < 200_000
    assert run.said == ["end"]


def test_goals_that_are_not_last_nest_as_deep_and_return() -> None:
    program = "!s. +!s <- !sum(20000, R); .print(R). +!sum(0, 0). +!sum(N, R) <- !sum(N - 1, M); R = M + 1."
    assert said(program) == ["20000"]


def test_tail_calls_hold_one_frame_and_say_how_many_they_were() -> None:
    run = Run("!count(500). +!count(0) <- .suspend. +!count(N) : N > 0 <- !count(N - 1).").end()
    (intention,) = run.agent.intentions.values()
    assert [frame.collapsed for frame in intention.frames] == [500]


def test_waiting_suspends_only_its_own_intention() -> None:
    """Checklist 23."""
    run = Run(WAITING).end()
    assert run.said == ["woken(7)", "done(8)", "wait_timeout"]
    assert run.done == ["act(wait_timeout)"]


def test_an_idle_agent_is_given_no_cycles_and_wakes_on_percepts_messages_and_timers() -> None:
    """Checklist 24."""
    run = Run("!s. +!s <- .wait(1000); .print(timer). +seen <- .print(percept). +told <- .print(message).")
    run.system.run(1)
    agent = run.agent
    before = agent.cycles
    assert agent.idle
    assert agent.next_timer is not None
    agent.perceive([parse_literal("seen")])
    assert not agent.idle
    run.end()
    assert run.said == ["percept", "timer"]
    assert agent.idle
    assert agent.cycles < before + 10


def test_an_action_waits_for_its_feedback_and_may_bind() -> None:
    agent = BdiAgent(
        "ag",
        parse_program("!s. +!s <- draw(X); .print(X). !t. +!t <- .print(other)."),
        say=(heard := []).append,
    )
    (request,) = agent.cycle().requests
    assert request.position.column == 12
    while not agent.idle:
        agent.cycle()
    assert heard == ["other"]
    agent.feedback(request.number, True, answer=parse_literal("draw(4)"))
    agent.feedback(request.number, True, answer=parse_literal("draw(5)"))  # nobody waits any more
    while not agent.idle:
        agent.cycle()
    assert heard == ["other", "4"]


def test_the_trace_says_which_conditions_of_an_inapplicable_plan_held() -> None:
    run = Run("y(3). !s. +!s : x & y(X) & X > 2 & not y(3).", traced=True).end()
    (option,) = run.of(OptionConsidered)
    assert isinstance(option, OptionConsidered)
    assert [(guard.condition, guard.holds) for guard in option.guards] == [
        ("x", False),
        ("y(X)", True),
        ("X > 2", True),
        ("not y(3)", False),
    ]
    assert not run.of(PlanSelected)


def test_the_same_seed_gives_the_same_run() -> None:
    from tests.engine.bdi.corpus import CHANCE

    assert said(CHANCE, seed=3) == said(CHANCE, seed=3)
    assert said(CHANCE, seed=3) != said(CHANCE, seed=4)


NATURALS = "nat(0). nat(N) :- nat(M) & N = M + 1. loop(X) :- loop(X). "


@pytest.mark.parametrize(
    ("program", "limits"),
    [
        ("+!s <- +b(0); !more(1). +!more(N) <- +b(N); !more(N + 1).", Limits(beliefs=50)),
        ("+!s : nat(X) & X < 0.", Limits(query_steps=1000)),
        ("+!s : .range(0,1,100000000000).", Limits(query_steps=1000)),
        ("+!s <- .range(0,1,100000000000).", Limits(query_steps=1000)),
        ("+!s <- ?(nat(X) & X < 0).", Limits(query_steps=1000)),
        ("+!s <- for (loop(X)) { .print(never) }.", Limits(query_steps=1000)),
        ("+!s <- .findall(X, nat(X), L).", Limits(query_steps=1000)),
        ("+!s <- !t. +!t <- !s; .print(never).", Limits(frames=100)),
        ("@a[atomic] +!s <- while (true) { !!t }. +!t.", Limits(events=40)),
        ("+!s <- !grow(x). +!grow(X) <- .concat(X, X, Y); !grow(Y).", Limits(size=10_000)),
        ("+!s <- !grow([x]). +!grow(X) <- .concat(X, X, Y); !grow(Y).", Limits(size=1_000)),
    ],
)
def test_an_unsafe_program_meets_its_limit(program: str, limits: Limits) -> None:
    handler = "!s. -!s[error(E)] <- .print(E). "
    run = Run(NATURALS + handler + program, limits=limits)
    run.system.run(3_000)
    assert run.said[0] == "limit_exceeded"


def test_large_beliefs_with_variables_are_not_copied_over_and_over() -> None:
    big = f"big({', '.join(['f(X)'] * 200)}). "
    free = ", ".join(f"Z{place}" for place in range(200))
    program = f"!s. +!s : nat(N) & big({free}) & N < 0. -!s[error(E), error_msg(M)] <- .print(M). "
    run = Run(NATURALS + big + program, limits=Limits(query_steps=200))
    run.system.run(3_000)
    assert "copying large beliefs" in run.said[0]


def test_an_agent_with_all_its_intentions_takes_no_more() -> None:
    run = Run("!s. +!s <- !!t; !s. +!t <- .wait(never).", limits=Limits(intentions=30))
    run.system.run(3_000)
    assert len(run.agent.intentions) == 30


def test_a_formula_made_while_running_may_nest_only_so_deep() -> None:
    program = "!s. +!s <- !deep(300, true). +!deep(0, F) <- F; .print(no). "
    program += "+!deep(N, F) <- !deep(N - 1, not F). -!s[error(E)] <- .print(E)."
    assert said(program) == ["limit_exceeded"]
    assert said(program.replace("300", "50")) == ["no"]


def test_an_agent_alone_lists_files_by_its_action() -> None:
    heard: list[str] = []
    program = parse_program("!list. +!list <- .list_files(parts, L); .print(L).")
    agent = BdiAgent("ag", program, actions={"ls": frozenset({2})}, say=heard.append)
    (request,) = agent.cycle().requests
    assert request.action.functor == "ls"
    agent.feedback(request.number, True, answer=parse_literal('ls(parts, ["a", "b"])'))
    agent.cycle()
    assert heard == ['["a","b"]']
