from __future__ import annotations

from dataclasses import replace

import pytest
from reasoner_samples import GENERATED, SEARCH
from test_dialogs import OPEN, DialogApp
from textual.widgets import TextArea

from engine.core.reasoner import Generation, ProposedPlan
from widgets.base.facts import LongText
from widgets.base.text_layout import plain
from widgets.dialogs.generated_plans import GeneratedPlansChoice, GeneratedPlansDialog, GeneratedPlansOffer

SIZES = [(160, 45), (100, 30), (80, 24)]


def check(text: str) -> list[str]:
    return ["line 12: teleport/1 is no action"] if "teleport" in text else []


def opened(made: Generation = GENERATED) -> DialogApp:
    return DialogApp(GeneratedPlansDialog(made, 3, check))


def read(app: DialogApp) -> list[str]:
    text = app.dialog.query_one(LongText)
    first, end = text.line_total()
    return [plain(text.line(number)) for number in range(first, end)]


def editor(app: DialogApp) -> TextArea:
    return app.screen.query_one(TextArea)


async def test_the_plans_are_read_first_with_verdicts_reasons_and_problems() -> None:
    app = opened()
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert app.text("#head") == "a-model-1 · attempt 2 of 3 · took 4.2 s · tokens 1240 · reactive"
        assert read(app)[:18] == [
            "✗ line 14: a line that belongs to nothing",
            "",
            "✓ accepted: plan 1",
            "@arrived",
            "+!reach(Object) : there_is(Object, here).",
            "",
            "✓ accepted: plan 2",
            *SEARCH.split("\n"),
            "",
            "✗ refused: plan 3",
            "  teleport/1 is no action; did you mean move/1?",
            "@jump",
            "+!reach(Object) <-",
            "    teleport(Object).",
        ]


async def test_the_answer_as_it_came_and_the_prompt_are_below_the_plans() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("G")
        below = read(app)[read(app).index("── The answer as it came ──") :]
        assert below[1:4] == ["```yaml", "plan:", "  EVENT: achieve reach(Object)"]
        assert below[-5:] == [
            "── System prompt ──",
            "You write plans for an agent.",
            "",
            "── Prompt ──",
            "Current goal: achieve reach(home)",
        ]


async def test_approving_installs_what_was_accepted() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("y")
        assert app.result == GeneratedPlansChoice(GeneratedPlansOffer.APPROVE)


async def test_nothing_can_be_approved_where_nothing_was_accepted() -> None:
    app = opened(replace(GENERATED, plans=GENERATED.plans[2:]))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("y")
        assert app.result is OPEN
        assert "no plan was accepted" in app.text("#line")


async def test_an_answer_without_plans_says_so() -> None:
    app = opened(Generation("gen1", "+!reach(home)", attempt=1))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert read(app) == ["The answer holds no plans."]
        assert app.text("#head") == "model unknown · attempt 1 of 3 · took 0.0 s · tokens 0 · reactive"
        await pilot.press("e", "ctrl+s", "escape")
        assert app.result is OPEN


@pytest.mark.parametrize("size", SIZES)
async def test_edited_plans_are_checked_as_they_are_typed_and_sent_only_when_sound(
    size: tuple[int, int],
) -> None:
    app = opened()
    async with app.run_test(size=size) as pilot:
        await pilot.press("e", "ctrl+s")
        await pilot.pause()
        assert "✗ line 12: teleport/1 is no action" in "".join(
            strip.text for strip in app.screen._compositor.render_strips()
        )
        assert app.result is OPEN

        editor(app).text = SEARCH
        await pilot.pause()
        await pilot.press(*"//ae", "ctrl+s")
        assert app.result == GeneratedPlansChoice(GeneratedPlansOffer.EDIT, "//ae" + SEARCH)


async def test_an_edit_is_dropped_only_on_purpose() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "x", "escape")
        assert editor(app).text.startswith("x@arrived")
        await pilot.press("escape", "G")
        assert app.screen is app.dialog
        await pilot.press("escape")
        assert app.result is None


async def test_looking_at_the_editor_alone_is_no_edit() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("e", "escape", "escape")
        assert app.result is None


async def test_asking_again_needs_words() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r", "enter")
        assert app.result is OPEN
        assert "Nothing is written yet" in app.text("#line")

        await pilot.press(*"use r", "enter")
        assert app.result == GeneratedPlansChoice(GeneratedPlansOffer.ASK_AGAIN, "use r")


@pytest.mark.parametrize("words", ["", "no"])
async def test_rejecting_may_give_a_reason(words: str) -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d", *words, "enter")
        assert app.result == GeneratedPlansChoice(GeneratedPlansOffer.REJECT, words)


async def test_escape_goes_back_from_writing_and_then_leaves_the_plans_waiting() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d", "x", "escape")
        assert app.result is OPEN
        await pilot.press("escape")
        assert app.result is None


async def test_offers_can_be_clicked() -> None:
    app = opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.click(".-keys", offset=(1, 0))
        assert app.result == GeneratedPlansChoice(GeneratedPlansOffer.APPROVE)


@pytest.mark.parametrize(
    "answer",
    ["word " * 200_000 + "END", "x" * 1_000_000 + "END", "a line of prose\n" * 65_000 + "END"],
    ids=["words", "one word", "lines"],
)
async def test_all_of_an_answer_of_a_megabyte_can_be_read(answer: str) -> None:
    app = opened(replace(GENERATED, answer=answer, system="", prompt=""))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        assert "".join(answer.split()) in "".join("".join(read(app)).split())
        shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert "END" in shown


async def test_nothing_hides_in_a_plan() -> None:
    app = opened(replace(GENERATED, plans=(ProposedPlan("+!a\u202e <- \u200bb;\t\x1b[2Jc."),), problems=()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert read(app)[1] == "+!a\\u202e <- \\u200bb;    \\u001b[2Jc."
        await pilot.press("e")
        assert editor(app).text == "+!a\\u202e <- \\u200bb;    \\u001b[2Jc."
