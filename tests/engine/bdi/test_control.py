"""What an operator sees and does (spec §5)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from engine.bdi.agent import BdiAgent
from engine.bdi.control import intentions, pending_step
from engine.bdi.errors import ErrorId
from engine.bdi.intentions import Event
from engine.bdi.parser import parse_literal, parse_plan, parse_program
from engine.bdi.semantics import Semantics
from engine.bdi.system import ActionResult, System
from engine.bdi.terms import Struct
from tests.engine.bdi.running import Run


def test_the_pending_step_is_the_one_that_runs_next() -> None:
    run = Run("@main +!s(X) <- .print(one); .print(X). !s(5).")
    run.system.run(1)
    step = pending_step(run.agent)
    assert step is not None
    assert (step.intention, step.goal, step.plan, step.step) == (1, "+!s(5)", "main", ".print(X)")
    assert (step.source, step.position) == ("ag.asl", (1, 30))
    run.end()
    assert pending_step(run.agent) is None


def test_an_intention_is_shown_as_a_stack_with_its_place_in_each_plan() -> None:
    run = Run("!s(5). +!s(X) <- if (X > 1) { Y = 2; !t(Y) } else { a }; c. +!t(Z) <- .wait(never).").end()
    (view,) = intentions(run.agent)
    assert (view.state, [frame.goal for frame in view.frames]) == ("condition", ["+!s(5)", "+!t(2)"])
    assert [(item.text, item.depth, item.current) for item in view.frames[0].items] == [
        ("if (X > 1)", 0, False),
        ("Y = 2", 1, False),
        ("!t(Y)", 1, True),
        ("else", 0, False),
        ("a", 1, False),
        ("c", 0, False),
    ]
    assert view.frames[0].bindings == (("X", "5"), ("Y", "2"))


def test_the_operator_suspends_resumes_drops_and_fails_intentions() -> None:
    run = Run("!s. !t. +!s <- .print(1); .print(2). +!t <- .wait(never). -!t[error(E)] <- .print(E).")
    run.system.run(1)
    run.agent.suspend(1)
    run.end()
    assert run.said == ["1"]
    assert intentions(run.agent)[0].state == "suspended"
    run.agent.resume(1)
    run.end()
    assert run.said == ["1", "2"]
    run.agent.fail(2, ErrorId.DEADLINE_REACHED, "too late")
    run.end()
    assert run.said == ["1", "2", "deadline_reached"]
    with pytest.raises(KeyError, match="there is no intention 2"):
        run.agent.drop(2)


def test_a_dropped_intention_leaves_nothing_behind() -> None:
    run = Run("!s. +!s <- !t. +!t <- .wait(1000).")
    run.system.run(2)
    run.agent.drop(1)
    assert run.agent.idle
    assert run.agent.next_timer is None
    assert not run.agent.intentions


def test_a_goal_without_a_plan_waits_for_one_that_is_being_made() -> None:
    run = Run("!s. !other. +!s <- !make(3, X); .print(X). +!other <- .print(other).")
    wanted: list[Event] = []

    def missing(event: Event) -> bool:
        wanted.append(event)
        return True

    run.agent.on_missing_plan = missing
    run.end()
    assert [event.text for event in wanted] == ["+!make(3,_)"]
    assert run.said == ["other"]
    assert intentions(run.agent)[0].state == "generation"
    run.agent.plans.add(parse_plan("+!make(N, M) <- M = N * 2", "model"), before=True)
    run.agent.resume(1)
    assert run.end().said == ["other", "6"]


def test_a_generation_that_fails_fails_the_goal() -> None:
    program = "!s. +!s <- !make. -!s[error(E), error_msg(M)] <- .print(E, M). "
    run = Run(program + "!t. +!t <- generate_plan(g); .print(made).")
    run.agent.on_missing_plan = lambda event: True
    run.agent.on_generate_plan = lambda intention, goal: True
    run.end()
    first, second = intentions(run.agent)
    run.agent.fail(first.id, ErrorId.PGP_FAILED, "no answer")
    run.agent.resume(second.id)
    assert sorted(run.end().said) == ["made", "pgp_failedno answer"]


class Grid:
    """The explorer's world of §3.1 with the two draws of seed 7: east, then south-east."""

    ways = ("north", "south", "east", "west", "north_east", "north_west", "south_east", "south_west", "here")
    steps = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1), (0, 0))
    blocked = frozenset({(1, 3), (2, 3), (3, 3)})

    def __init__(self) -> None:
        self.place = (2, 2)
        self.things = {(1, 0): "rock", (4, 4): "home"}
        self.draws = ["east", "south_east"]
        self.home_at = 0
        self.agent: BdiAgent | None = None

    @property
    def actions(self) -> Mapping[str, frozenset[int]]:
        return {"move": frozenset({1}), "getDirectionToMove": frozenset({1})}

    def near(self, way: str) -> tuple[int, int]:
        x, y = self.steps[self.ways.index(way)]
        return self.place[0] + x, self.place[1] + y

    def free(self, cell: tuple[int, int]) -> bool:
        return all(0 <= one < 5 for one in cell) and cell not in self.blocked

    def percepts(self, agent: str) -> list[Struct]:
        seen = [f"direction({way})" for way in self.ways] + ["object(rock)", "object(home)"]
        around = self.ways[:8]
        seen += [f"{'free' if self.free(self.near(way)) else 'obstacle'}({way})" for way in around]
        seen += [
            f"there_is({thing},{way})" for way in self.ways if (thing := self.things.get(self.near(way)))
        ]
        return [parse_literal(one) for one in seen]

    def act(self, agent: str, action: Struct) -> ActionResult:
        if action.functor == "getDirectionToMove":
            return ActionResult(True, answer=Struct("getDirectionToMove", (Struct(self.draws.pop(0)),)))
        way = action.args[0]
        assert isinstance(way, Struct)
        if self.free(self.near(way.functor)):
            self.place = self.near(way.functor)
        if self.things.get(self.place) == "home" and not self.home_at:
            assert self.agent is not None
            self.home_at = self.agent.cycles
        return ActionResult(True)


BASELINE = """
+!reach(O) : there_is(O, here).
+!reach(O) : there_is(O, D) <- move(D).
+!reach(O) : not there_is(O, _) <- getDirectionToMove(D); move(D); !reach(O).
"""


@pytest.mark.parametrize(("semantics", "cycles"), [(Semantics.compat(), 33), (Semantics(), 7)])
def test_the_baseline_reaches_home_in_as_many_cycles_as_the_specification_counts(
    semantics: Semantics, cycles: int
) -> None:
    """Checklist 21, and 55: 19 percepts at the start."""
    grid = Grid()
    assert len(grid.percepts("robot")) == 19
    system = System(environment=grid, semantics=semantics)
    grid.agent = system.add("robot", parse_program(BASELINE + "!reach(home)."))
    while not grid.home_at:
        system.round()
    assert grid.home_at == cycles


def test_the_same_plans_from_a_reactive_generation_take_37_cycles_in_compat() -> None:
    grid = Grid()
    system = System(environment=grid, semantics=Semantics.compat())
    agent = grid.agent = system.add("robot", parse_program("!reach(home)."))
    meta = parse_plan(
        "-!reach(home) : missing_plan_for(reach(home)) <- generate_plan(reach(home)); !reach(home)"
    )

    def missing(event: Event) -> bool:
        agent.plans.add(meta)
        agent.beliefs.add(
            parse_literal("missing_plan_for(reach(home))"), (Struct("source", (Struct("self"),)),)
        )
        return False

    agent.on_missing_plan = missing
    agent.on_generate_plan = lambda intention, goal: True
    while not grid.home_at:
        system.round()
        for view in intentions(agent):
            if view.state == "generation":
                for plan in reversed(parse_program(BASELINE).plans):
                    agent.plans.add(plan, before=True)
                agent.resume(view.id)
    assert grid.home_at == 37
