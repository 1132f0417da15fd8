"""The explorer's grid and the generator behind it."""

from __future__ import annotations

import pytest

from engine.tools.worlds.explorer import (
    DIRECTIONS,
    EXPLORER_GRID,
    Cell,
    ExplorerState,
    FeedbackKind,
    Grid,
    KotlinRandom,
    draw_direction,
    draw_grid,
    free_directions,
    initial_state,
    move,
    percepts,
    recorded_answer,
    recorded_answers,
)


def went(*directions: str) -> ExplorerState:
    state = initial_state()
    for direction in directions:
        state, _ = move(state, direction)
    return state


def test_the_first_draws_of_seed_7_are_kotlins() -> None:
    draws = KotlinRandom(7)
    assert (draws.below(5), draws.below(6)) == (1, 5)


def test_draws_lie_below_their_bound_and_a_bound_of_one_draws_too() -> None:
    draws, same = KotlinRandom(-3), KotlinRandom(-3)
    assert {draws.below(8) for _ in range(300)} == set(range(8))
    assert {draws.below(3) for _ in range(300)} == set(range(3))
    assert [same.below(1), same.below(1)] == [0, 0]
    other = KotlinRandom(-3)
    other.below(8)
    other.below(8)
    assert same.below(1000) == other.below(1000)


@pytest.mark.parametrize("bound", [0, -1, 2**31])
def test_an_impossible_bound_or_seed_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="the bound is from 1"):
        KotlinRandom(7).below(bound)
    with pytest.raises(ValueError, match="does not fit 32 bits"):
        KotlinRandom(2**31)


def test_the_robot_perceives_19_literals_at_the_start_as_in_the_thesis() -> None:
    seen = [f"{one.functor}({', '.join(one.args)})" for one in percepts(initial_state())]
    assert len(seen) == 19
    assert seen[:9] == [f"direction({name})" for name in (*DIRECTIONS, "here")]
    assert seen[9:11] == ["object(rock)", "object(home)"]
    assert seen[11:] == [
        f"{'obstacle' if name in ('south', 'south_east', 'south_west') else 'free'}({name})"
        for name in DIRECTIONS
    ]


def test_the_border_is_an_obstacle_and_objects_are_seen_in_the_neighbouring_cells() -> None:
    corner = went("north_west", "north_west")
    assert corner.robot == Cell(0, 0)
    assert free_directions(corner) == ("south", "east", "south_east")
    assert percepts(corner)[-1] == ("there_is", ("rock", "east"))


@pytest.mark.parametrize("direction", ["south", "south_east", "south_west"])
def test_a_move_into_an_obstacle_changes_nothing_and_succeeds(direction: str) -> None:
    after, feedback = move(initial_state(), direction)
    assert (after.robot, feedback.kind, feedback.success) == (Cell(2, 2), FeedbackKind.MOVED, True)
    assert percepts(after) == percepts(initial_state())


def test_east_south_east_south_is_home() -> None:
    before = went("east", "south_east")
    assert percepts(before)[-1] == ("there_is", ("home", "south"))
    after, feedback = move(before, "south")
    assert (feedback.kind, feedback.value, after.moves) == (FeedbackKind.REACHED, "home", 3)
    assert percepts(after)[-1] == ("there_is", ("home", "here"))
    assert move(after, "here")[1].kind is FeedbackKind.REACHED


def test_no_other_way_home_has_three_moves() -> None:
    ways = {(): initial_state()}
    for _ in range(3):
        ways = {(*way, name): move(state, name)[0] for way, state in ways.items() for name in DIRECTIONS}
    assert [way for way, state in ways.items() if state.robot == Cell(4, 4)] == [
        ("east", "south_east", "south")
    ]


def test_a_direction_that_does_not_exist_fails() -> None:
    after, feedback = move(initial_state(), "up")
    assert (after, feedback.success, feedback.value) == (initial_state(), False, "up")


def test_a_direction_is_drawn_among_those_that_were_free_at_the_last_look() -> None:
    assert draw_direction(initial_state(), KotlinRandom(7)).value == "east"
    enclosed = Grid(1, 1, Cell(0, 0), frozenset(), ())
    assert draw_direction(initial_state(enclosed), KotlinRandom(7)).kind is FeedbackKind.ENCLOSED


def test_the_picture_shows_the_grid_of_the_specification() -> None:
    assert draw_grid(initial_state()) == (". R . . .", ". . . . .", ". . A . .", ". # # # .", ". . . . H")
    assert draw_grid(went("east", "south_east", "south"))[4] == ". . . . A"
    assert len(EXPLORER_GRID.objects) == 2


def test_the_recorded_answers_ship_and_an_unknown_one_is_named() -> None:
    assert recorded_answers() == ("listing-5.8", "listing-5.9", "listing-5.10", "listing-5.11")
    assert recorded_answer("listing-5.10").count("```") == 2
    with pytest.raises(KeyError, match=r"no recorded answer '\.\./x'; there are listing-5\.8"):
        recorded_answer("../x")
