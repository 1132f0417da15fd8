"""The dialogs on jobs, backlog, campaigns and previews: what they show, what they post, and hostile text."""

from __future__ import annotations

import pytest
from textual.app import App

from engine.core.text import clean_line
from widgets.base.facts import Fact, ListModel
from widgets.base.line_pane import Requested
from widgets.base.rows import Row
from widgets.base.text_layout import Piece
from widgets.dialogs.campaign import CampaignDialog, CampaignModel
from widgets.dialogs.lists import BacklogDialog, JobsDialog
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


def row(key: str) -> Row:
    return Row(key, (Piece(key, "strong"), Piece(clean_line(EVIL))))


async def test_jobs_and_items_are_asked_about_by_key() -> None:
    app = DialogApp()
    async with app.run_test(size=(100, 30)) as pilot:
        await app.push_screen(JobsDialog(ListModel(rows=[row("j2"), row("j1")])))
        await pilot.press("x", "down", "enter")
        app.pop_screen()
        facts = {"i2": (Fact("evidence", EVIL),)}
        model = ListModel(rows=[row("i1"), row("i2")], standing="2 open of 2", facts=facts)
        await app.push_screen(BacklogDialog(model))
        await pilot.press("a", "down", "d", "C")
        await pilot.pause()
        assert app.posted == ["j2", "j1", "i1", "i2", "i2"]
        assert "2 open of 2" in app.text
        assert "evidence [red]x[/]" in app.text
        assert "\u202e" not in app.text


@pytest.mark.parametrize("size", [(160, 45), (100, 30), (80, 24)])
async def test_a_campaign_posts_only_what_can_be_asked_of_it(size: tuple[int, int]) -> None:
    app = DialogApp()
    family = [row("k1.1"), row("k1.2"), row("k1.3")]
    model = CampaignModel(
        "k1",
        "on sample",
        "?",
        "needs you",
        "warning",
        (EVIL,),
        family,
        {"k1.2": (Fact("because", EVIL),)},
        {"k1.2": "d2"},
        "k1.2",
        may=frozenset({"apply", "decline"}),
    )
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
        await pilot.press("backspace", "u", "up", "a", "d", "left_square_bracket")
        await pilot.pause()
        assert dialog.list.cursor == "k1.2"  # what was asked is about the chosen one
        assert app.posted[-3:] == [("k1", "apply"), ("k1", "decline"), -1]
        assert "needs you" in app.text
        assert "k1.3" in app.text


async def test_a_campaign_that_goes_on_before_its_dialog_is_drawn_is_shown_as_it_is_then() -> None:
    app = DialogApp()
    async with app.run_test() as pilot:
        dialog = CampaignDialog(CampaignModel("k1", "texts", "1 of 2"))
        app.push_screen(dialog)
        dialog.show(CampaignModel("k2", "rules", "2 of 2"))
        await pilot.pause()
        assert "Campaign k2 rules" in app.text


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
