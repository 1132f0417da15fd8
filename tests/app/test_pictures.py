"""Pictures: what they draw, that signs and words tell the same without colour, and that they fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import App

from app.projection import pictures
from engine.agent.steering.budget_status import AmountForecast, BudgetStatusLine
from engine.core.budgets import BudgetKind, Spent
from engine.core.improvement import Gain
from widgets.base.facts import FactsPane
from widgets.base.text_layout import plain, width_of
from widgets.dialogs.picture import DOTS, POINT, RULE, Curve, Picture, PictureDialog, picture_lines


def drawn(picture: Picture, width: int = 70, height: int = 14) -> str:
    lines = list(picture_lines(picture, height, width))
    assert max(map(width_of, lines)) <= width
    return "\n".join(map(plain, lines))


def state(done: int, actions: int) -> Any:
    """As much of an agent as a picture of its budget looks at: one goal with ten steps."""
    steps = [SimpleNamespace(status=SimpleNamespace(terminal=at < done)) for at in range(10)]
    return SimpleNamespace(
        agent_id="pilot-1",
        goals={"g1": None},
        plans={"g1": SimpleNamespace(steps=steps)},
        spent={"g1": Spent(actions=actions)},
        lineage=lambda goal: [SimpleNamespace(id=goal)],
    )


def test_a_budget_burns_to_its_limit_and_the_forecast_shows_how_far_it_may_be_off() -> None:
    line = BudgetStatusLine(BudgetKind.ACTIONS, 14, 5, forecast=AmountForecast(9, 12, 16))
    picture = pictures.burn([state(0, 0), state(1, 2), state(3, 5)], "g1", line)
    taken, likely, low, high, limit = picture.curves
    assert taken.points == ((0, 0), (1, 2), (3, 5))
    assert [curve.points[-1] for curve in (likely, low, high)] == [(10, 12), (10, 9), (10, 16)]
    assert (limit.points, limit.sign) == (((0, 14), (10, 14)), RULE)
    text = drawn(picture)
    for words in ("taken", "likely", "limit", "steps done", "5 in 3 of 10 steps", "about 12 (9 to 16)"):
        assert words in text


def test_gains_stand_with_their_intervals_and_the_line_between_better_and_worse() -> None:
    def candidate(name: str, mean: float, ruling: str) -> Any:
        assert Gain(-1.08, -2, 0.1, 9, "% of time saved").words == "1.08 % of time more"
        gain = Gain(mean, mean - 0.2, mean + 0.2, 20, "steps")
        return SimpleNamespace(
            id=name, verdict=SimpleNamespace(gain=gain, ruling=SimpleNamespace(value=ruling))
        )

    unjudged = SimpleNamespace(id="c3", verdict=None)
    family: Any = SimpleNamespace(
        id="k1", candidates=[candidate("c1", 0.5, "better"), candidate("c2", -0.1, "unclear"), unjudged]
    )
    picture = pictures.gains(family)
    assert picture.rows == ("c1", "c2")
    assert [curve.style for curve in picture.curves] == ["text", "success", "success", "warning", "warning"]
    text = drawn(picture)
    for words in ("c1┤", "c2┤", POINT, "│", "+0.5 steps (+0.3 to +0.7), better"):
        assert words in text
    assert "no candidate was measured yet" in drawn(pictures.gains(SimpleNamespace(id="k", candidates=[])))  # type: ignore[arg-type]


def test_the_crew_lights_up_where_work_is_handed_over() -> None:
    def handoff(agent: str, run: str, caller: str = "", *, opened: bool = False, success: bool = True) -> Any:
        result = None if opened else SimpleNamespace(success=success)
        return SimpleNamespace(agent=agent, run=run, caller=caller, open=opened, proof=False, result=result)

    handoffs = [
        handoff("reviewer", "run-1"),
        handoff("coder", "run-2", "run-1", opened=True),
        handoff("critic", "run-3", success=False),
    ]
    picture = pictures.crew(SimpleNamespace(handoffs=dict(enumerate(handoffs))))  # type: ignore[arg-type]
    assert picture.curves[-1].sign == POINT
    assert {curve.sign for curve in picture.curves[:-1]} == {DOTS}
    text = drawn(picture)
    for words in ("you", "reviewer", "▶ coder", "critic", "reviewer → coder: 1 at work", "critic: 1 failed"):
        assert words in text


def test_memories_stand_by_how_often_they_were_recalled() -> None:
    def match(name: str, count: int) -> Any:
        memory = SimpleNamespace(
            id=name, access_count=count, accessed_at=940.0 if count else None, content="says\x1b[2J"
        )
        return SimpleNamespace(memory=memory)

    picture = pictures.recalls([match("m1", 0), match("m2", 7), match("m3", 2)], 1000.0)
    assert picture.rows == ("m3", "m2")
    text = drawn(picture)
    for words in ("m2┤▓▓▓", "times recalled", "m2       7 times, last 1m ago: says", "m3       2 times"):
        assert words in text
    assert "\x1b" not in text
    assert "recalled yet" in drawn(pictures.recalls([match("m1", 0)], 1000.0))


def test_events_are_counted_by_the_second() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    events: Any = [
        SimpleNamespace(at=(now - timedelta(seconds=age)).isoformat()) for age in (0.5, 0.7, 3, 99)
    ]
    picture = pictures.rate(events, now)
    assert dict(picture.curves[0].points)[-0.0] == 2
    assert "3 events in 60 s, 2 in the busiest second" in drawn(picture)


@pytest.mark.parametrize("size", [(160, 45), (80, 24), (40, 10)])
async def test_a_picture_fits_every_terminal_and_its_text_can_be_copied(size: tuple[int, int]) -> None:
    async def look() -> Picture:
        return Picture("Actions", (Curve(((0, 0), (4, 7)), "taken"),))

    dialog = PictureDialog(await look(), look)
    app = App[None]()
    async with app.run_test(size=size) as pilot:
        await app.push_screen(dialog)
        await pilot.pause()
        pane = dialog.query_one(FactsPane)
        assert max(width_of(pane.line(at)) for at in range(*pane.line_total())) <= pane.text_width
        await pilot.press("P")
        await pilot.pause()
        assert not dialog.is_attached
