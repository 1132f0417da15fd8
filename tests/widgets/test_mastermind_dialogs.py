"""The dialogs on jobs, backlog, campaigns and previews: what they show, what they post, and hostile text."""

from __future__ import annotations

import pytest
from textual.app import App

from widgets.base.facts import Fact
from widgets.base.line_pane import Requested
from widgets.dialogs.backlog import BacklogDialog, BacklogModel, ItemLine, JobLine, JobsDialog, JobsModel
from widgets.dialogs.campaign import CampaignDialog, CampaignModel, CandidateLine
from widgets.dialogs.preview import DO_IT, PreviewDialog, PreviewModel

EVIL = "[red]x[/] \x1b[2J\u202e[@click=app.quit]here[/]"


class DialogApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.posted: list[object] = []
        self.answers: list[object] = []

    def on_requested(self, event: Requested) -> None:
        self.posted.append(event.args if len(event.args) > 1 else event.args[0])

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())


async def test_jobs_are_cancelled_only_while_they_run() -> None:
    app = DialogApp()
    lines = (
        JobLine("j2", "▶", "accent", "running", f"evolve {EVIL}", EVIL, 0.25, "3/12"),
        JobLine("j1", "✗", "error", "failed", "coord_query x", "boom", over=True),
    )
    async with app.run_test(size=(100, 30)) as pilot:
        await app.push_screen(JobsDialog(JobsModel(lines)))
        await pilot.press("c", "down", "c", "enter")
        await pilot.pause()
        assert app.posted == ["j2", "j1"]
        assert "▓▓▓░░░░░░░░░ 3/12" in app.text
        assert "✗ j1" in app.text
        assert "j1 has ended already" in app.text
        assert "[red]x[/]" in app.text
        assert "\u202e" not in app.text


async def test_marked_items_are_settled_together_and_those_that_cannot_be_are_named() -> None:
    app = DialogApp()
    items = tuple(
        ItemLine(
            f"i{at}",
            "?",
            "warning",
            9 - at,
            "pending approval" if at < 3 else "completed",
            "sample",
            EVIL,
            (Fact("evidence", EVIL),),
            approvable=at < 3,
            rejectable=at < 3,
        )
        for at in (1, 2, 3)
    )
    async with app.run_test(size=(100, 30)) as pilot:
        await app.push_screen(BacklogDialog(BacklogModel(items, "2 open of 3")))
        await pilot.press("space", "space", "p", "a")
        await pilot.pause()
        assert app.posted == [(2, False), (("i1", "i2"), True)]
        await pilot.press("end", "r")
        await pilot.pause()
        assert "i3 cannot be rejected any more: it is completed" in app.text
        await pilot.press("P")
        assert app.posted[-1] == (1, True)


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_a_campaign_posts_only_what_can_be_asked_of_it(size: tuple[int, int]) -> None:
    app = DialogApp()
    family = (
        CandidateLine("k1.1", "", "✗", "error", "rejected", EVIL, 1, 1, diff="d1"),
        CandidateLine("k1.2", "", "✓", "success", "better", "faster", 4, 2, (1.0, 2.0, 3.0), "+2 s",
                      (Fact("because", EVIL),), chosen=True, diff="d2"),
        CandidateLine("k1.3", "└ ", "·", "text", "no better", "slower", 1, 0, (-1.0, 0.0, 1.0), "0 s"),
    )  # fmt: skip
    may = frozenset({"apply", "decline"})
    model = CampaignModel("k1", "on sample", "?", "needs you", "warning", (EVIL,), family, may=may)
    async with app.run_test(size=size) as pilot:
        dialog = CampaignDialog(model)
        await app.push_screen(dialog)
        await pilot.pause()
        assert dialog.list.cursor == "k1.2"
        assert app.posted[-1] == "k1.2"
        dialog.show_difference("d2", "--- a\n+++ b\n-old\x1b[2J\n+new [red]")
        await pilot.press("enter")
        await pilot.pause()
        assert "+new [red]" in app.text
        assert "\x1b" not in app.text
        await pilot.press("backspace", "u", "a", "d", "left_square_bracket")
        await pilot.pause()
        assert app.posted[-3:] == [("k1", "apply"), ("k1", "decline"), -1]
        assert "needs you" in app.text
        assert "└ k1.3" in app.text
        assert "✓ rejected" not in app.text


async def test_a_preview_is_done_by_enter_and_a_choice_is_the_one_under_the_cursor() -> None:
    app = DialogApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for model, keys in (
            (PreviewModel("evolve x", EVIL, (("files", EVIL),)), ["enter"]),
            (PreviewModel("evolve x", "asks", choices=(("one", "a"), ("two", "b"))), ["down", "enter"]),
            (PreviewModel("evolve x", "nothing", wrong=EVIL), ["enter", "escape"]),
        ):
            app.push_screen(PreviewDialog(model), app.answers.append)
            await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()
        assert app.answers == [DO_IT, "two", None]
