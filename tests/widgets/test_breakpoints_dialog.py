from __future__ import annotations

from dataclasses import replace

import pytest
from reasoner_samples import BREAKPOINTS
from test_dialogs import OPEN, DialogApp
from textual.widgets import Input

from widgets.base.line_pane import LinePane, Requested
from widgets.dialogs.limits import (
    BreakpointLine,
    BreakpointsDialog,
    BreakpointsModel,
)


class BreakpointsApp(DialogApp):
    """Does what is asked, as the cockpit would."""

    def __init__(self, model: BreakpointsModel = BREAKPOINTS) -> None:
        self.opened = BreakpointsDialog(model, self.check)
        super().__init__(self.opened)
        self.model = model
        self.asked: list[tuple[object, ...]] = []

    def check(self, kind: str, pattern: str) -> str:
        return "" if pattern.endswith(")") else f"{pattern or 'nothing'} is no pattern for a {kind}"

    def become(self, *lines: BreakpointLine) -> None:
        self.model = replace(self.model, breakpoints=lines)
        self.opened.show(self.model)

    def on_requested(self, event: Requested) -> None:
        if event.what != "dry_run":
            self.asked.append((event.what, *event.args))
        match event.what, event.args:
            case "add", (kind, pattern):
                self.become(*self.model.breakpoints, BreakpointLine("new", kind, pattern))
            case "switch", (ident, enabled):
                self.become(
                    *(
                        replace(each, enabled=enabled) if each.id == ident else each
                        for each in self.model.breakpoints
                    )
                )
            case "remove", (ident,):
                self.become(*(each for each in self.model.breakpoints if each.id != ident))

    def lines(self) -> list[str]:
        pane = self.dialog.query_one("#list", LinePane)
        rows = (pane.render_line(y).text[1:].rstrip(" │┃") for y in range(pane.content_size.height))
        return [row for row in rows if row]


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_breakpoints_show_kind_pattern_and_hits_and_those_that_are_off(size: tuple[int, int]) -> None:
    app = BreakpointsApp()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert [line.split() for line in app.lines()] == [
            ["●", "belief", "there_is(home,", "_)", "3", "hits"],
            ["○", "step", "move(south)", "off"],
            ["●", "error", "no_plan", "1", "hit"],
        ]


async def test_a_breakpoint_is_switched_and_deleted_and_the_list_follows() -> None:
    app = BreakpointsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("space")
        assert app.lines()[0].startswith("○ belief")
        await pilot.press("enter")
        assert app.lines()[0].startswith("● belief")
        await pilot.press("down", "space")
        assert app.lines()[1].startswith("● step")
        await pilot.press("delete")
        assert [line.split()[1] for line in app.lines()] == ["belief", "error"]
        assert app.result is OPEN

        await pilot.press("escape")
        assert app.result is None


async def test_hits_are_counted_while_the_dialog_is_open() -> None:
    app = BreakpointsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a", "g", *"rea")
        app.become(replace(BREAKPOINTS.breakpoints[0], hits=1_204))
        await pilot.pause()
        assert app.lines()[0].endswith("1,204 hits")
        assert app.dialog.query_one(Input).value == "rea"


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (["s"], "step"),
        (["b"], "belief"),
        (["g"], "goal"),
        (["p"], "plan"),
        (["e"], "error"),
        (["down", "enter"], "belief"),
    ],
)
async def test_a_breakpoint_is_added_by_kind_and_pattern(keys: list[str], kind: str) -> None:
    app = BreakpointsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a", *keys, *"ab d()", "enter")
        assert app.asked == [("add", kind, "ab d()")]
        assert app.lines()[-1].split()[1:] == [kind, "ab", "d()"]

        await pilot.press("space")
        assert app.asked[-1][0] == "switch"


async def test_a_wrong_pattern_is_refused_as_it_is_typed_and_on_enter() -> None:
    app = BreakpointsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a", "b", "x")
        assert app.text("#said") == "✗ x is no pattern for a belief"
        await pilot.press("backspace", "enter")
        assert app.text("#said") == "✗ nothing is no pattern for a belief"
        assert app.asked == []


async def test_escape_goes_back_step_by_step() -> None:
    app = BreakpointsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a", "b", "x", "escape")
        assert app.focused is app.dialog.query_one("#kinds")
        await pilot.press("space", "delete")
        assert app.asked == []
        await pilot.press("escape")
        assert app.focused is app.dialog.query_one("#list", LinePane)
        assert app.result is OPEN
        await pilot.press("escape")
        assert app.result is None


async def test_an_empty_list_says_which_key_adds_one() -> None:
    app = BreakpointsApp(BreakpointsModel())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("space", "delete", "enter")
        assert "Press a to add one." in app.lines()[0]
        assert app.asked == []


async def test_all_of_it_can_be_done_by_the_mouse() -> None:
    app = BreakpointsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click(".-keys", offset=(1, 0))
        await pilot.click("#kinds", offset=(6, 3))
        assert app.text("#said").startswith("plan: when a plan that fits is chosen")
        await pilot.press("escape", "escape")
        await pilot.click("#list", offset=(10, 2), times=2)
        assert app.lines()[2].startswith("○ error")
