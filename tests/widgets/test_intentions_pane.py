from __future__ import annotations

import pytest
from cockpit_samples import requests
from reasoner_samples import INTENTIONS, ReasonerApp
from test_rows import PaneApp
from textual.message import Message

from widgets.base.facts import ListModel
from widgets.base.text_layout import plain
from widgets.panes.goals import FrameLine, GoalStack, intention_of, intention_rows


def lines(pane: GoalStack) -> list[str]:
    return [pane.render_line(y).text[1:].rstrip(" │┃") for y in range(pane.content_size.height)]


async def test_each_intention_is_a_tree_with_its_outermost_plan_first() -> None:
    pane = GoalStack()
    async with PaneApp(pane).run_test(size=(64, 16)) as pilot:
        pane.show(ListModel(rows=INTENTIONS))
        await pilot.pause()

        assert lines(pane)[:11] == [
            "  … 1 waiting for action · move(east)",
            "  └ @reach_by_search +!reach(home)",
            "    !step_towards(home) · Object = home",
            "›   └ @wander +!step_towards(home)                       ×42",
            "      move(D) · Object = home, D = east",
            "  ▶ 4 running",
            "› └ @note +there_is(rock, D)",
            "    +seen(rock)",
            "  ‖ 5 suspended · held by the operator",
            "› └ @p12 +!rest",
            "",
        ]


@pytest.mark.parametrize(("key", "action"), [("p", "suspend"), ("r", "resume"), ("D", "drop")])
async def test_keys_ask_for_something_to_be_done_to_the_intention_of_the_row(key: str, action: str) -> None:
    messages: list[Message] = []
    app = ReasonerApp()
    async with app.run_test(size=(160, 45), message_hook=messages.append) as pilot:
        app.fill()
        app.intentions.focus()
        await pilot.press("down", "down", "down", "down", key, "enter")
        await pilot.pause()

    assert requests(messages) == [("intention_action", "4", action), ("intention_plan", "4")]


async def test_without_intentions_the_keys_ask_for_nothing() -> None:
    messages: list[Message] = []
    app = ReasonerApp()
    async with app.run_test(size=(100, 30), message_hook=messages.append) as pilot:
        app.intentions.loaded()
        app.intentions.focus()
        await pilot.press("p", "D", "enter")
        await pilot.pause()
        assert "The agent's goals will appear here" in "\n".join(lines(app.intentions))

    assert requests(messages) == []


def test_rows_have_keys_of_their_own_that_name_their_intention() -> None:
    assert len({row.key for row in INTENTIONS}) == len(INTENTIONS)
    assert [intention_of(row.key) for row in INTENTIONS if row.selectable] == [*"1114455"]
    assert intention_of("goal:1") == intention_of("") == ""


def test_an_intention_without_a_plan_yet_is_a_line_of_its_own() -> None:
    (row,) = intention_rows("7", "waiting", "a plan", "+!reach(home)")

    assert plain(row.pieces) == "… 7 waiting for a plan · +!reach(home)"
    assert row.mark.text == " "


async def test_a_deep_stack_ends_at_the_frame_in_hand() -> None:
    frames = tuple(FrameLine(f"+!g({n})", "p", f"!g({n + 1})", (("N", str(n)),)) for n in range(2_000))
    pane = GoalStack()
    async with PaneApp(pane).run_test(size=(64, 16)) as pilot:
        pane.show(ListModel(rows=list(intention_rows("1", "running", frames=frames))))
        await pilot.press("G")
        assert lines(pane)[-2].startswith("›")
        assert "+!g(1999)" in lines(pane)[-2]
