from __future__ import annotations

from cockpit_samples import requests
from reasoner_samples import BELIEFS, ReasonerApp
from test_rows import PaneApp
from textual.message import Message

from widgets.base.facts import ListModel
from widgets.base.line_pane import LinePane
from widgets.panes.beliefs import BeliefsPane, belief_row


def lines(pane: BeliefsPane) -> list[str]:
    return [pane.render_line(y).text[1:].rstrip(" │┃") for y in range(pane.content_size.height)]


MANY = [belief_row(f"seen({n})", ("percept",), n) for n in reversed(range(10_000))]


async def test_beliefs_show_their_origin_as_a_sign_their_sources_and_tick() -> None:
    pane = BeliefsPane()
    async with PaneApp(pane).run_test(size=(90, 12)) as pilot:
        pane.show(ListModel(rows=BELIEFS))
        await pilot.pause()
        words = [line.split() for line in lines(pane)[:6]]

        assert words == [
            ["+", "→", "free(south_east)", "percept", "42"],
            ["@", "home_is(south_east)", "scout-2", "40"],
            ["→", "there_is(rock,", "north_west)", "percept", "+1", "12"],
            ["●", "visited(2,", "2)", "self", "3"],
            ["→", "object(rock)", "percept", "1"],
            ["→", "direction(north)", "percept", "1"],
        ]


async def test_enter_tells_which_belief_was_chosen_and_an_update_tells_nothing() -> None:
    messages: list[Message] = []
    app = ReasonerApp()
    async with app.run_test(size=(100, 30), message_hook=messages.append) as pilot:
        app.fill()
        app.beliefs.focus()
        app.beliefs.show(ListModel(rows=BELIEFS[1:]))
        await pilot.pause()
        assert requests(messages) == []

        await pilot.press("down", "enter")
        await pilot.pause()

    assert requests(messages) == [("belief_chosen", "there_is(rock, north_west)")]


async def test_of_ten_thousand_beliefs_only_those_in_sight_are_drawn() -> None:
    pane = BeliefsPane()
    async with PaneApp(pane).run_test(size=(90, 12)) as pilot:
        pane.show(ListModel(rows=MANY))
        await pilot.press("G")
        assert lines(pane)[-1].split()[1] == "seen(0)"
        layouts = pane.screen._layout_updates
        drawn: list[int] = []
        pane.draw = lambda number, *rest: drawn.append(number) or LinePane.draw(pane, number, *rest)  # type: ignore[method-assign]

        await pilot.press("pageup")
        pane.show(ListModel(rows=[belief_row("new", fresh=True), *MANY]))
        await pilot.pause()

        assert max(drawn) - min(drawn) < 30
        assert pane.screen._layout_updates == layouts
        assert pane.cursor == "seen(9)"


def test_a_belief_that_did_not_change_keeps_its_row() -> None:
    assert belief_row("a", ("self",), 1) is belief_row("a", ("self",), 1)
    assert belief_row("a", ("self",), 1) != belief_row("a", ("self",), 1, True)
