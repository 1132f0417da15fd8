"""An AgentSpeak(L) agent at the helm: its mind in the panes, stepped, steered, and given plans."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit

from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.reasoner import GenerationStage
from tests.rounds import sizes
from widgets.base.dialog import ConfirmDialog
from widgets.base.facts import LongText
from widgets.dialogs.generated_plans import GeneratedPlansDialog
from widgets.dialogs.lists import BreakpointsDialog
from widgets.panes.beliefs import BeliefsPane
from widgets.panes.world import WorldPane

WAITS = """
!go. !count(0).
+!go <- .wait(never); done.
+!count(N) : N < 3 <- !count(N + 1).
+!count(N) <- +counted(N).
"""


@pytest.fixture
async def robot(tmp_path: Path) -> AsyncIterator[Flight]:
    """The explorer robot with the plans of the baseline, paused before its first step."""
    async with cockpit(tmp_path / "ws", mission="explorer", size=(140, 40)) as flight:
        yield flight


async def with_program(flight: Flight, program: str) -> None:
    """Give the cockpit an agent that runs this program, and look at it."""
    path = flight.app.context.workspace / "mind.asl"
    path.write_text(program, encoding="utf-8")
    await flight.type(f"agent_create asl_agent mind file={path}")
    await flight.until(lambda: "mind" in flight.engine.agents, "the agent")
    await flight.told()
    await flight.type("agent mind")
    await flight.until(lambda: flight.state.agent_id == "mind" and flight.state.mind is not None, "its mind")
    await flight.press("escape")


async def test_the_panes_show_what_it_pursues_believes_and_is_about_to_do(robot: Flight) -> None:
    await robot.shows("!reach(home)", "1 running", "+!reach(home)", "Object =")
    await robot.shows("▷ getDirectionToMove(Direction)", "held next", "· move(Direction)")
    await robot.shows("3 Beliefs", "object(home)", "percept", "5 World · explorer", "H home")
    assert robot.state.actions == 0


async def test_a_step_is_one_body_step_and_the_world_follows(robot: Flight) -> None:
    await robot.press("s")
    await robot.until(lambda: robot.state.actions == 1 and not robot.state.grants, "the first step")
    await robot.shows("▷ move(Direction)", "Direction = east")
    await robot.press("s")
    await robot.until(lambda: robot.state.actions == 2 and not robot.state.grants, "the second step")
    await robot.shows("▷ !reach(Object)", "• A→", "moved east")


async def test_it_runs_home_and_its_goal_is_achieved(robot: Flight) -> None:
    await robot.press("space")
    await robot.until(lambda: robot.state.goals["g1"].status is GoalStatus.ACHIEVED, "home")
    await robot.says("goal g1 achieved")
    await robot.shows("IDLE", "reached home")
    assert robot.state.actions == 5


async def test_over_and_out_step_whole_goals(robot: Flight) -> None:
    for actions in (1, 2):
        await robot.press("s")
        await robot.until(lambda: robot.state.actions == actions, "a step")  # noqa: B023
        await robot.at_rest()
    await robot.press("S")
    await robot.until(lambda: robot.state.goals["g1"].status is GoalStatus.ACHIEVED, "the goal below")
    assert robot.state.run.value == "paused"


async def test_w_and_5_change_between_the_world_and_the_session(robot: Flight) -> None:
    world = robot.app.query_one("#world", WorldPane)
    assert world.is_on_screen
    await robot.press("W")
    await robot.until(lambda: robot.session.is_on_screen and robot.session.has_focus, "the session")
    assert not world.is_on_screen
    await robot.press("5")
    await robot.until(lambda: world.is_on_screen, "the world")
    assert not robot.session.is_on_screen


async def test_another_agent_has_working_memory_and_a_session_again(robot: Flight) -> None:
    await robot.type("agent_create bdi_agent plain")
    await robot.until(lambda: "plain" in robot.engine.agents)
    await robot.type("agent plain")
    await robot.shows("3 Working memory", "5 Sandbox")
    assert not robot.app.query_one("#beliefs", BeliefsPane).is_on_screen
    await robot.type("agent robot")
    await robot.shows("3 Beliefs", "5 World")


async def test_a_goal_a_belief_and_an_intention_are_the_operators(robot: Flight) -> None:
    await with_program(robot, WAITS)
    await robot.type("believe raining")
    await robot.until(lambda: "raining" in robot.state.held_beliefs, "the belief")
    assert robot.state.held_beliefs["raining"].sources == ("operator",)
    await robot.type("forget raining")
    await robot.until(lambda: "raining" not in robot.state.held_beliefs, "no belief")
    await robot.type("goal !count(1)")
    await robot.until(lambda: len(robot.state.goals) == 3, "the goal")
    await robot.type("goal this is no literal")
    await robot.says("such as: goal reach(home)")


async def test_keys_in_the_goals_hold_an_intention_back_and_drop_it_after_asking(robot: Flight) -> None:
    await with_program(robot, WAITS)
    await robot.press("space")
    await robot.until(lambda: "counted(3)" in robot.state.held_beliefs, "the count")
    (intention,) = robot.state.intentions
    await robot.press("1")

    def rows() -> list[str]:
        return [row.key for row in robot.goals.rows if row.key.startswith("intention")]

    await robot.until(rows, "its row")
    robot.goals.move_cursor(rows()[0])
    await robot.press("p")
    await robot.until(lambda: robot.state.intentions[intention].state == "suspended", "held back")
    await robot.shows("‖", "suspended")
    await robot.press("D")
    await robot.dialog(ConfirmDialog)
    await robot.press("y")
    await robot.until(lambda: not robot.state.intentions, "dropped")
    assert robot.state.goals["g1"].status is GoalStatus.FAILED


async def test_plans_of_a_model_are_shown_before_they_are_installed(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer-generated", size=(120, 35)) as flight:
        await flight.press("space")
        await flight.dialog(GeneratedPlansDialog)
        await flight.shows("Plans for +!reach(home)", "✓ accepted: plan 1", "recorded · attempt 1")
        assert flight.state.actions == 0
        text = flight.app.screen.query_one(LongText)
        assert any("EVENT: achieve reach(home)" in section.text for section in text.sections)
        assert any("System Message" in section.text for section in text.sections)
        await flight.press("escape")
        await flight.no_dialog()
        await flight.shows("plans wait for you (i)", "asks you", "waiting for a")
        await flight.press("i")
        await flight.dialog(GeneratedPlansDialog)
        await flight.press("y")
        await flight.until(lambda: flight.state.goals["g1"].status is GoalStatus.ACHIEVED, "home")
        assert (await flight.journal(ev.GenerationSettled, "robot"))[0].approved
        assert [plan.model for plan in flight.state.generated] == ["recorded"] * len(flight.state.generated)


async def test_one_step_has_plans_made_and_the_panes_say_what_is_waited_for(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer-generated", size=(120, 35)) as flight:
        await flight.press("a")
        await flight.says("once plans are made for it, a opens them")
        await flight.press("s")
        await flight.dialog(GeneratedPlansDialog)
        await flight.press("escape")
        await flight.no_dialog()
        await flight.shows("▷ .generate_plan(reach(home))", "plans wait: a opens them", "└ @p__1")
        await flight.press("a")
        await flight.dialog(GeneratedPlansDialog)
        await flight.press("y")
        await flight.shows("✓ .generate_plan(reach(home))", "▷ !reach(home)", "PAUSED")
        assert (flight.state.actions, flight.state.grants) == (0, 0)


async def test_a_mind_is_asked_a_formula_and_a_program_is_named_by_its_file(robot: Flight) -> None:
    path = robot.app.context.workspace / "asked.asl"
    path.write_text(
        "far(rock). near(X) :- object(X) & not far(X). object(home). object(rock). !s. +!s <- .prnt(1)."
    )
    await robot.type('agent_create asl_agent asked {"program": {"file": "%s"}}' % path)  # noqa: UP031
    await robot.says("there is no internal action .prnt; did you mean .print")
    await robot.type("agent asked")
    await robot.until(lambda: robot.state.agent_id == "asked" and robot.state.mind is not None, "its mind")
    await robot.type("query ?near(X)")
    await robot.says("X = home")
    await robot.type("query ?near(")
    await robot.says("expected a term, found the end of the text")


async def test_plans_that_are_rejected_fail_the_goal_with_the_reason(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer-generated", size=(100, 30)) as flight:
        await flight.press("space")
        await flight.dialog(GeneratedPlansDialog)
        await flight.press("d")
        await flight.press(*"too risky", "enter")
        await flight.until(lambda: flight.state.goals["g1"].status is GoalStatus.FAILED, "no plan")
        (generation,) = flight.state.generations.values()
        assert generation.stage is GenerationStage.FAILED
        assert "too risky" in generation.reason


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("break belief free(south_east)", "belief +free(south_east)"),
        ("break goal +!reach(X)", "goal +!reach(home) was adopted"),
        ("break goal !reach(_)", "goal +!reach(home) was adopted"),
        ("break plan search", "plan search was selected"),
        ("break step move(_)", "move(east) is about to run"),
    ],
)
async def test_breakpoints_hold_the_running_agent(robot: Flight, line: str, told: str) -> None:
    await robot.type(line)
    await robot.until(lambda: "b1" in robot.state.mind_breakpoints, "the breakpoint")
    await robot.press("escape", "space")
    await robot.until(lambda: robot.state.mind_breakpoints["b1"].hits == 1, "held")
    await robot.says(f"breakpoint b1: {told}")
    await robot.shows("PAUSED", "breakpoint b1")
    held = robot.state.goals["g1"].status is GoalStatus.ACTIVE
    assert held
    await robot.press("space")
    await robot.until(lambda: robot.state.mind_breakpoints["b1"].hits == 2 or not robot.state.open_goals)


async def test_an_error_holds_it_too(robot: Flight) -> None:
    await with_program(robot, '!s. +!s <- read("nothing", X); .print(X). -!s <- .print(mended).')
    await robot.type("break error action_failed")
    await robot.until(lambda: "b1" in robot.state.mind_breakpoints)
    await robot.press("escape", "space")
    await robot.says("breakpoint b1: goal")
    await robot.press("space")
    await robot.until(lambda: robot.state.goals["g1"].status is GoalStatus.ACHIEVED, "mended")


async def test_the_breakpoints_are_listed_switched_and_deleted(robot: Flight) -> None:
    await robot.press("b")
    await robot.dialog(BreakpointsDialog)
    await robot.press("I")
    await robot.no_dialog()
    await robot.press(*"goal reach(X)", "enter")
    await robot.until(lambda: "b1" in robot.state.mind_breakpoints, "the breakpoint")
    await robot.press("escape", "b")
    await robot.dialog(BreakpointsDialog)
    await robot.shows("goal", "reach(X)")
    await robot.press("space")
    await robot.until(lambda: not robot.state.mind_breakpoints["b1"].enabled, "switched off")
    await robot.press("delete")
    await robot.until(lambda: not robot.state.mind_breakpoints, "deleted")


async def test_what_a_program_prints_is_inert(robot: Flight) -> None:
    await with_program(
        robot, '!s. +!s <- .print("[@click=app.quit]\x1b[2Jx[/]"); +p("[b]q[/]"); .wait(never).'
    )
    await robot.press("space")
    await robot.shows("[@click=app.quit]", "[b]q[/]")
    assert robot.app.is_running


@pytest.mark.parametrize("size", sizes((80, 24), (160, 45), (40, 12)))
async def test_every_size_shows_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer", size=size) as flight:
        for key, words in (("1", "!reach(home)"), ("3", "session_cwd"), ("5", "A"), ("2", "move(Direction)")):
            await flight.press(key)
            await flight.shows(words)
