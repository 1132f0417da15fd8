from __future__ import annotations

from dataclasses import replace

from cockpit_samples import requests
from reasoner_samples import BELIEFS, ReasonerApp
from test_rows import PaneApp
from textual.message import Message

from widgets.base.line_pane import LinePane
from widgets.panes.beliefs import BeliefLine, BeliefsModel, BeliefsPane


def lines(pane: BeliefsPane) -> list[str]:
    return [pane.render_line(y).text[1:].rstrip(" │┃") for y in range(pane.content_size.height)]


MANY = BeliefsModel(tuple(BeliefLine(f"seen({n})", ("percept",), n, "WorldPerceived") for n in range(10_000)))


async def test_beliefs_show_their_origin_as_a_sign_their_sources_tick_and_event() -> None:
    pane = BeliefsPane()
    async with PaneApp(pane).run_test(size=(90, 12)) as pilot:
        pane.show(BELIEFS)
        await pilot.pause()
        words = [line.split() for line in lines(pane)[:6]]

        assert words == [
            ["+", "→", "free(south_east)", "percept", "42", "WorldPerceived"],
            ["@", "home_is(south_east)", "scout-2", "40", "MessageReceived"],
            ["→", "there_is(rock,", "north_west)", "percept", "+1", "12", "WorldPerceived"],
            ["●", "visited(2,", "2)", "self", "3", "+!reach(home)"],
            ["→", "object(rock)", "percept", "1", "WorldPerceived"],
            ["→", "direction(north)", "percept", "1", "WorldPerceived"],
        ]
        ends = {line.index(tick) + len(tick) for line, tick in zip(lines(pane), ("42 ", "40 "), strict=False)}
        assert len(ends) == 1


async def test_provenance_gives_way_to_the_belief_where_there_is_little_room() -> None:
    pane = BeliefsPane()
    async with PaneApp(pane).run_test(size=(50, 12)) as pilot:
        pane.show(BELIEFS)
        await pilot.pause()
        assert lines(pane)[1].split() == ["@", "home_is(south_east)", "scout-2", "40"]

        await pilot.resize_terminal(36, 12)
        await pilot.pause()
        assert lines(pane)[1].split() == ["@", "home_is(south_east)", "40"]

        await pilot.resize_terminal(90, 12)
        await pilot.pause()
        assert lines(pane)[1].split()[-1] == "MessageReceived"


async def test_enter_tells_which_belief_was_chosen_and_an_update_tells_nothing() -> None:
    messages: list[Message] = []
    app = ReasonerApp()
    async with app.run_test(size=(100, 30), message_hook=messages.append) as pilot:
        app.fill()
        app.beliefs.focus()
        app.beliefs.show(replace(BELIEFS, beliefs=BELIEFS.beliefs[:-1]))
        await pilot.pause()
        assert requests(messages) == []

        await pilot.press("down", "enter")
        await pilot.pause()

    assert requests(messages) == [("belief_chosen", "there_is(rock, north_west)")]


async def test_of_ten_thousand_beliefs_only_those_in_sight_are_drawn() -> None:
    pane = BeliefsPane()
    async with PaneApp(pane).run_test(size=(90, 12)) as pilot:
        pane.show(MANY)
        await pilot.press("G")
        assert lines(pane)[-1].split()[1] == "seen(0)"
        assert pane.border_subtitle == "10,000 · newest first"
        layouts = pane.screen._layout_updates
        drawn: list[int] = []
        pane.draw = lambda number, *rest: drawn.append(number) or LinePane.draw(pane, number, *rest)  # type: ignore[method-assign]

        await pilot.press("pageup")
        pane.show(replace(MANY, beliefs=(*MANY.beliefs, BeliefLine("new", fresh=True))))
        await pilot.pause()

        assert max(drawn) - min(drawn) < 30
        assert pane.screen._layout_updates == layouts
        assert pane.cursor == "seen(9)"


async def test_a_belief_that_did_not_change_keeps_its_row() -> None:
    pane = BeliefsPane()
    async with PaneApp(pane).run_test(size=(90, 12)) as pilot:
        pane.show(BELIEFS)
        await pilot.pause()
        before = {row.key: row for row in pane.rows}
        older = replace(BELIEFS.beliefs[-1], fresh=False)
        pane.show(BeliefsModel((*map(replace, BELIEFS.beliefs[:-1]), older)))

        same = [row for row in pane.rows if before[row.key] is row]
        assert len(same) == len(BELIEFS.beliefs) - 1
        assert pane.rows[0].mark.text == " "
