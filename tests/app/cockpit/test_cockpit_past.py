"""The past in the cockpit: every pane as it was, nothing acts, and agents go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flight import Flight, cockpit

from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from tests.rounds import sizes
from widgets.dialogs.memory_browser import MemoryBrowser
from widgets.dialogs.preview import ComparisonDialog
from widgets.panes.timeline import Timeline


@pytest.fixture
async def flown(tmp_path: Path) -> AsyncIterator[Flight]:
    """A cockpit whose agent has reached its goal; the plan has the focus."""
    async with cockpit(tmp_path / "ws", size=(160, 45)) as flight:
        await flight.type("goal create a directory named 'x' and create a directory named 'y'")
        await flight.until(lambda: flight.state.plan is not None and len(flight.steps) >= 2, "a plan")
        await flight.press("escape")
        await flight.press("space")
        await flight.until(lambda: flight.state.goals["g1"].status is GoalStatus.ACHIEVED, "the end")
        await flight.engine.kept()
        await flight.press("2")
        yield flight


def at(flight: Flight) -> int:
    return flight.app.context.past_at or 0


async def back(flight: Flight, *keys: str) -> None:
    """Press keys that lead into the past, and wait until it is shown."""
    await flight.press(*keys)
    await flight.until(
        lambda: flight.app.context.in_past and not flight.app.controllers.time.moving, "the past"
    )


async def marks(flight: Flight) -> list[int]:
    """Where one can go back to; what happened last is as now is."""
    past = flight.engine.past("pilot-1")
    return [mark.version for mark in await past.marks() if mark.version < await past.head()]


async def now(flight: Flight) -> None:
    await flight.press("end")
    await flight.until(
        lambda: not flight.app.context.in_past and not flight.app.controllers.time.moving, "now"
    )


async def test_brackets_go_back_and_forward_through_the_marks(flown: Flight) -> None:
    """Issue 7, item 6: scrub through the session by its marks."""
    places = await marks(flown)
    await back(flown, "left_square_bracket")
    assert at(flown) == places[-1]
    await back(flown, "left_square_bracket")
    await flown.until(lambda: at(flown) == places[-2], "the mark before")
    await flown.press("right_square_bracket")
    await flown.until(lambda: at(flown) == places[-1], "the next mark")
    await flown.press("right_square_bracket")
    await flown.until(lambda: not flown.app.context.in_past, "now behind the last mark")


async def test_every_pane_shows_what_was_and_the_status_line_says_so(flown: Flight) -> None:
    await back(flown, "left_square_bracket")
    await flown.press("home")
    places = await marks(flown)
    await flown.until(lambda: at(flown) == places[0], "the first mark")
    await flown.shows("PAST", f"event {places[0]}", "ahead", "│" if places[0] > 1 else "PAST")
    assert flown.state.goals["g1"].status is GoalStatus.PENDING
    assert flown.state.plan is None
    assert "x" not in flown.session_text
    assert flown.app.query_one(Timeline).display
    await now(flown)
    await flown.until(lambda: flown.steps, "the plan as it is")
    assert not flown.app.query_one(Timeline).display
    assert "PAST" not in flown.text


async def test_the_session_shows_output_up_to_the_place(flown: Flight) -> None:
    finished = [mark.version for mark in await flown.engine.past("pilot-1").marks() if mark.kind == "action"]
    await flown.type(f"past {finished[0]}")
    await flown.until(lambda: at(flown) == finished[0], "the first action's end")
    await flown.until(lambda: "x" in flown.session_text, "its output")
    assert "mkdir y" not in flown.session_text
    flown.app.query_one("#plan").focus()
    await now(flown)
    await flown.until(lambda: "mkdir y" in flown.session_text, "all output")


async def test_keys_and_words_that_act_say_so_and_do_nothing_in_the_past(flown: Flight) -> None:
    await back(flown, "left_square_bracket")
    head = await flown.engine.head()
    for key in ("space", "s", "x", "i", "t", "b", "K", "delete", "o", "full_stop", "e"):
        flown.app.context.say("", "note")
        await flown.press(key)
        await flown.says("you look at the past")
        assert len(flown.app.screen_stack) == 1, key
    for line in (
        "goal create a directory named 'z'",
        "believe sky blue",
        "! ls",
        "mission hello-file",
        "remember the port is 3128",
    ):
        flown.app.context.say("", "note")
        await flown.type(line)
        await flown.says("you look at the past")
    assert await flown.engine.head() == head


async def test_agents_go_on_and_the_screen_says_how_far_now_is_ahead(flown: Flight) -> None:
    await back(flown, "left_square_bracket")
    place, state = at(flown), flown.state
    await flown.engine.submit(cmd.Believe(agent="pilot-1", key="sky", value="blue"))
    await flown.until(lambda: "sky" in flown.app.context.live.state.beliefs, "the live projection goes on")
    assert flown.state is state
    assert "sky" not in flown.state.beliefs
    ahead = flown.app.context.live.state.version - place
    await flown.shows(f"now is {ahead} events ahead")
    await now(flown)
    assert "sky" in flown.state.beliefs


async def test_what_asks_the_operator_opens_nothing_over_the_past(flown: Flight) -> None:
    await back(flown, "left_square_bracket")
    await flown.engine.submit(cmd.Intervene(agent="pilot-1"))
    await flown.says("needs you")
    assert len(flown.app.screen_stack) == 1
    await now(flown)
    await flown.until(lambda: flown.state.intervention is not None, "the turn")


async def test_memory_is_shown_as_it_was(flown: Flight) -> None:
    await back(flown, "left_square_bracket")
    as_of = flown.app.context.as_of
    assert as_of is not None
    assert flown.app.controllers.panes.in_mind.as_of in (as_of, None)
    await flown.until(lambda: flown.app.controllers.panes._in_mind.as_of == as_of, "memory as of the event")
    await now(flown)
    await flown.until(lambda: flown.app.controllers.panes._in_mind.as_of is None, "memory as it is")


async def test_here_and_now_are_compared_in_a_dialog(flown: Flight) -> None:
    await back(flown, "left_square_bracket")
    await flown.press("home")
    first = (await marks(flown))[0]
    await flown.until(lambda: at(flown) == first, "the first mark")
    await flown.type("compare")
    await flown.dialog(ComparisonDialog)
    await flown.shows("Plan", "Beliefs", "Goals", "g1", "achieved")
    await flown.press("escape")
    await flown.no_dialog()


async def test_an_event_that_has_not_happened_is_said(flown: Flight) -> None:
    await flown.type("past 999999")
    await flown.says("has not happened yet")
    assert not flown.app.context.in_past


async def test_choosing_an_agent_comes_back_to_now(flown: Flight) -> None:
    await flown.engine.submit(cmd.CreateAgent(agent="second"))
    await flown.until(lambda: len(flown.app.context.live.states) == 2, "the second agent")
    await back(flown, "left_square_bracket")
    assert [state.agent_id for state in flown.app.context.projector.states] == ["pilot-1"]
    await flown.type("agent second")
    await flown.until(
        lambda: flown.app.context.agent == "second" and not flown.app.context.in_past, "the agent now"
    )


async def test_without_a_past_it_says_so(flight: Flight) -> None:
    await flight.press("2", "left_square_bracket")
    await flight.says("has no past yet")
    assert not flight.app.context.in_past
    assert not await flight.journal(ev.CommandReceived)


async def test_a_jump_over_a_long_past_lets_frames_be_drawn_meanwhile(tmp_path: Path) -> None:
    """Issue 7, item 6: a jump over thousands of events holds the loop for a few dozen at a time."""
    async with cockpit(tmp_path / "ws", size=(120, 35)) as flight:
        live = flight.engine._agents["pilot-1"]
        for number in range(3_000):
            belief = ev.BeliefAdded(key=f"key{number % 50}", value=number)
            live.append(belief, "operator:test")
        await live.log.commit()
        await flight.until(lambda: flight.app.context.live.state.version > 3_000, "the events")
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        head = flight.app.context.live.state.version - 5
        flight.app.controllers.time.go_to_place(str(head))
        while not flight.app.context.in_past:
            await asyncio.sleep(0)
        beside.cancel()
        assert at(flight) == head
        assert turns >= 3_000 // 32


async def test_the_shell_that_the_operator_holds_stays_out_of_the_past(flown: Flight) -> None:
    await flown.press("t")
    await flown.until(lambda: flown.app.controllers.layout.terminal is not None, "the shell")
    flown.app.query_one("#plan").focus()
    flown.app.controllers.time.go_to_place("2")
    await flown.until(
        lambda: flown.app.context.in_past and flown.app.controllers.layout.terminal is None,
        "the session as it was",
    )
    await flown.type("past now")
    await flown.until(
        lambda: not flown.app.context.in_past and flown.app.controllers.layout.terminal is not None,
        "the shell again",
    )


async def test_a_reasoner_is_seen_as_it_was(tmp_path: Path) -> None:
    async with cockpit(tmp_path / "ws", mission="explorer", size=(160, 45)) as flight:
        await flight.press("2", "s")
        await flight.until(lambda: flight.state.actions >= 1, "an action")
        await flight.at_rest()
        beliefs = set(flight.state.held_beliefs)
        flight.app.controllers.time.go_to_place("2")
        await flight.until(lambda: flight.app.context.in_past, "the past")
        assert flight.state.actions == 0
        assert set(flight.state.held_beliefs) != beliefs
        await flight.shows("PAST")
        await flight.press("S")
        await flight.says("you look at the past")
        await now(flight)
        assert set(flight.state.held_beliefs) >= beliefs


@pytest.mark.parametrize("size", sizes((80, 24), (40, 10)))
async def test_the_past_can_be_seen_at_every_size(tmp_path: Path, size: tuple[int, int]) -> None:
    async with cockpit(tmp_path / "ws", mission="first-flight", size=size) as flight:
        await flight.press("s")
        await flight.until(lambda: flight.state.actions == 1, "a step")
        await flight.at_rest()
        await flight.press("2")
        await back(flight, "left_square_bracket")
        await flight.shows("PAST")
        lines = flight.app.screen._compositor.render_strips()
        assert all(line.cell_length == size[0] for line in lines)
        await now(flight)


async def test_a_click_on_the_timeline_goes_to_the_nearest_mark(flown: Flight) -> None:
    places = await marks(flown)
    await back(flown, "left_square_bracket")
    await flown.until(lambda: flown.app.query_one(Timeline).size.width > 0, "the timeline")
    await flown.pilot.click("#timeline", offset=(1, 0))
    await flown.until(lambda: at(flown) == places[0], "the first mark")


async def test_the_browser_finds_what_was_remembered_by_then(flown: Flight) -> None:
    await flown.engine.kept()
    fact = {"content": "the proxy listens on port 3128", "memory_type": "fact"}
    receipt = await flown.engine.submit(
        cmd.Remember(agent="pilot-1", verb="store_memory", arguments={**fact, "workflow_id": "w1"})
    )
    assert receipt.ok, receipt.message
    found = await flown.engine.recall("hybrid_search_memories", {"query": "proxy"})
    assert found
    place = (await marks(flown))[0]
    flown.app.controllers.time.go_to_place(str(place))
    await flown.until(lambda: flown.app.context.in_past, "the past")
    await flown.type("memory proxy")
    browsing = flown.app.controllers.mind
    await flown.until(
        lambda: isinstance(flown.app.screen, MemoryBrowser) and browsing._search is None, "an answer"
    )
    await flown.until(lambda: not flown.app.controllers.mind._filling, "the answer shown")
    assert "the proxy listens on port 3128" not in flown.text
