"""The fleet board, the timeline and the selection: what they show, what their keys post, hostile text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App
from textual.binding import Binding

from engine.crew.ontology.kinds import HandoffState
from widgets.base.asked import Asked, AskOption
from widgets.base.dialog import WriteDialog
from widgets.base.facts import Fact
from widgets.base.line_pane import Requested
from widgets.dialogs.fleet import FleetDialog, FleetModel
from widgets.dialogs.handoffs import HandoffLine, HandoffsDialog, HandoffsModel
from widgets.panes.fleet_grid import LABELS, FleetRow, label_at

EVIL = "[red]x[/] \x1b[2J\u202e[@click=app.quit]here[/]"


class CrewApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.posted: list[Any] = []
        self.looks = 0

    def on_requested(self, event: Requested) -> None:
        if event.what == "refresh":
            return
        args = (*event.args[1:], "")[:3] if event.what == "answered" else event.args
        self.posted.append(args if len(args) > 1 else args[0])

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())


def fleet(count: int) -> tuple[FleetRow, ...]:
    states = list(HandoffState)
    return tuple(
        FleetRow(
            f"type a{at}",
            f"agent-number-{at}",
            states[at % 9].glyph,
            "text",
            f"{states[at % 9].words} 4m",
            label_at(at),
            "OPR",
            "1.0.0",
            floor=at == 1,
            queued=at % 3,
            last="✓0.71",
            used="14/15",
            tools="degraded" if at % 2 else "ok",
            work=EVIL,
        )
        for at in range(count)
    )


ASKED = Asked(
    "hr-7",
    "the checkpoint",
    "driving_forces 17 < 20: go on?",
    (AskOption("retry"), AskOption("write it by hand", text=True), AskOption("stop")),
    EVIL,
    free=True,
    waited="4m",
)


async def test_fifty_agents_stand_on_one_screen_and_each_is_two_letters_away() -> None:
    app = CrewApp()
    async with app.run_test(size=(160, 45)) as pilot:
        board = FleetDialog(FleetModel(fleet(50), "50 agents"))
        await app.push_screen(board)
        await pilot.pause()
        assert board.grid.columns == 2
        assert all(f"agent-number-{at} " in app.text for at in range(50))
        for row in fleet(50)[7::9]:
            await pilot.press(*row.label)
            assert board.grid.row is not None
            assert board.grid.row.key == row.key
        await pilot.press("enter")
        await pilot.pause()
        assert app.posted[-1] == ("type a43", "open")


async def test_two_hundred_agents_have_labels_that_no_key_of_the_board_is_in_the_way_of() -> None:
    assert len({label_at(at) for at in range(LABELS)}) == LABELS >= 200
    assert label_at(LABELS) == ""
    keys = [binding.key for binding in FleetDialog.BINDINGS if isinstance(binding, Binding)]
    assert len(set(keys)) == len(keys)
    app = CrewApp()
    async with app.run_test(size=(80, 24)) as pilot:
        board = FleetDialog(FleetModel(fleet(200)))
        await app.push_screen(board)
        await pilot.pause()
        for row in fleet(200)[3::41]:
            await pilot.press(*row.label)
            assert board.grid.row is not None
            assert board.grid.row.key == row.key
            assert row.name in app.text
        await pilot.press("slash", *"number-17", "enter", "end")
        await pilot.pause()
        assert [row.name for row in board.grid.agents] == [
            row.name for row in fleet(200) if "number-17" in row.name
        ]
        assert "filter 'number-17' hides 189" in app.text
        await pilot.press("a", "escape", "escape")
        await pilot.pause()
        assert len(board.grid.agents) == 200
        assert app.screen is board


async def test_what_is_asked_is_answered_in_place_by_number_or_in_words() -> None:
    app = CrewApp()
    async with app.run_test(size=(100, 30)) as pilot:
        first, *rest = fleet(5)
        board = FleetDialog(FleetModel((replace(first, asked=ASKED), *rest)))
        await app.push_screen(board)
        await pilot.pause()
        for shown in (
            "agent-number-0: the checkpoint hr-7 · 4m",
            "17 < 20",
            "1 retry",
            "3 stop",
            "0 write an",
        ):
            assert shown in app.text
        await pilot.press("1", "9", "2", "enter", *"mine", "enter", "0", *"both", "enter", "0", "x", "escape")
        await pilot.pause()
        assert app.posted == [("hr-7", 1, ""), ("hr-7", 2, "mine"), ("hr-7", 0, "both")]
        await pilot.press("down", "1", "I", *"look at it", "enter", "t", "x", "h")
        await pilot.pause()
        assert app.posted[3:] == [
            ("type a1", "look at it"),
            *(("type a1", request) for request in ("transfer", "toggle", "handoffs")),
        ]
        await pilot.press("up", "0", *"late")
        board.show(FleetModel(tuple(rest)))
        await pilot.press("enter")
        await pilot.pause()
        assert "hr-7 is open no longer" in app.text
        assert len(app.posted) == 7
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, FleetDialog)


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24), (40, 10), (5, 3)])
async def test_every_state_is_a_word_and_nothing_is_cut_without_a_mark(size: tuple[int, int]) -> None:
    """Line 59: the board."""
    app = CrewApp()
    async with app.run_test(size=size) as pilot:
        long = replace(fleet(1)[0], name="a-very-long-name-of-an-agent-that-goes-on-and-on-and-on")
        await app.push_screen(FleetDialog(FleetModel((long, *fleet(9)[1:]), "nine")))
        await pilot.pause()
        assert "\x1b" not in app.text
        assert "\u202e" not in app.text
        if size[0] >= 80:
            for state in HandoffState:
                assert f"{state.glyph} " in app.text
                assert state.words in app.text
            assert "…" in next(line for line in app.text.splitlines() if "a-very-long" in line)
            assert "[red]x[/]" in app.text
        await pilot.press("down", "end", "pagedown", "home", "right", "left", "1", "q")


@pytest.mark.parametrize("count", [3, 60])
@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_the_names_of_the_columns_stand_above_them(size: tuple[int, int], count: int) -> None:
    app = CrewApp()
    async with app.run_test(size=size) as pilot:
        rows = tuple(replace(one, badge="OPR", state="paused") for one in fleet(count))
        await app.push_screen(FleetDialog(FleetModel(rows, "many")))
        while " typ " not in app.text:
            await pilot.pause()
        lines = app.text.splitlines()
        at = next(number for number, line in enumerate(lines) if " typ " in line)
        heading, first = lines[at], lines[at + 1]
        for title, text in (("agent", "agent-number"), ("typ", "OPR"), ("state", "paused")):
            there = [one.start() for one in re.finditer(rf"\b{title}\b", heading)]
            assert there == [one.start() for one in re.finditer(text, first)], title


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24), (40, 10)])
async def test_the_timeline_posts_only_what_can_be_asked_of_a_handoff(size: tuple[int, int]) -> None:
    """Line 59: the timeline."""
    app = CrewApp()
    lines = (
        HandoffLine("b-1", "P b-1 parallel: pws, jtbd", mark="✗", style="error", state="failed", tail=EVIL),
        HandoffLine("h-1", "D h-1 pws", " ┌ ", "▶", "accent", "running", "12s",
                    may=frozenset({"cancel", "raise"})),
        HandoffLine("h-2", f"D h-2 {EVIL}", " └ ", "✗", "error", "failed", "3s",
                    tail="QUALITY_GATE: no emotional job", may=frozenset({"retry", "error"})),
    )  # fmt: skip
    async with app.run_test(size=size) as pilot:
        model = HandoffsModel(lines, "2 handoffs", "h-1", (Fact("task", EVIL),))
        dialog = HandoffsDialog(model)
        await app.push_screen(dialog)
        await pilot.pause()
        await pilot.press("x", "r", "plus", "minus", "down", "x", "r", "o", "enter")
        await pilot.pause()
        asked = [one for one in app.posted if isinstance(one, tuple)]
        assert asked == [("h-1", "cancel"), ("h-1", "raise"), ("h-2", "retry"), ("h-2", "error")]
        assert "h-2" in app.posted
        if size[0] >= 100:
            assert "no agent of the engine works on it" in app.text
            assert "┌ D h-1 pws" in app.text
        assert "\u202e" not in app.text


async def test_a_text_is_sent_only_when_there_is_one() -> None:
    app = CrewApp()
    async with app.run_test(size=(80, 24)) as pilot:
        written: list[str | None] = []
        app.push_screen(WriteDialog("Take h-1 over", EVIL), written.append)
        await pilot.pause()
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "there is nothing to send yet" in app.text
        await pilot.press(*"by hand", "enter", *"two", "ctrl+s")
        await pilot.pause()
        assert written == ["by hand\ntwo"]
