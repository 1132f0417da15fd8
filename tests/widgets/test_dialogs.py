from __future__ import annotations

from typing import Any

import pytest
from textual import on
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from app.cockpit.terminal_app import TerminalApp
from engine.core.reasoner import Generation
from engine.core.sandbox import OfferedBelief
from widgets.base import dialog as box
from widgets.base.dialog import BoxDialog, ConfirmDialog
from widgets.base.facts import FactsPane
from widgets.base.line_pane import RowChosen
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, plain
from widgets.dialogs.generated_plans import GeneratedPlansDialog
from widgets.dialogs.help import HelpDialog
from widgets.dialogs.step_editor import StepDraft, StepEdit, StepEditor, args_text, parse_args
from widgets.dialogs.themes import ThemesDialog
from widgets.dialogs.turn import (
    ChangeList,
    HandBack,
    HandBackDialog,
    HandoverDecision,
    HandoverDialog,
    HandoverModel,
    InterventionChoice,
    InterventionDialog,
    InterventionModel,
    Offer,
)

OPEN = object()


class DialogApp(TerminalApp[None]):
    """Opens one dialog and keeps its result."""

    def __init__(self, dialog: ModalScreen[Any]) -> None:
        super().__init__()
        self.dialog = dialog
        self.result: object = OPEN

    def on_mount(self) -> None:
        self.push_screen(self.dialog, self.keep)

    def keep(self, result: object) -> None:
        self.result = result

    def text(self, selector: str) -> str:
        visual = self.dialog.query_one(selector, Static).visual
        assert isinstance(visual, Content)
        return visual.plain


# Intervention

MODEL = InterventionModel(
    "build api_client",
    "run pip install httpx",
    "NETWORK_ERROR",
    "no answer",
    ("RETRY_WITH_DELAY 3/3",),
    {Offer.TAKE_SHELL: "no terminal here"},
)


async def test_intervention_tells_what_happened_and_what_was_tried() -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        lines = [plain(line) for line in app.dialog.query_one("FactsPane").lines_for(80)]  # type: ignore[attr-defined]

        assert lines == [
            "goal     build api_client",
            "step     run pip install httpx",
            "error    NETWORK_ERROR no answer",
            "tried    RETRY_WITH_DELAY 3/3",
        ]


@pytest.mark.parametrize(
    ("key", "offer"), [("e", Offer.EDIT_AND_RETRY), ("x", Offer.SKIP), ("r", Offer.RETRY)]
)
async def test_an_offer_is_chosen_by_its_key(key: str, offer: Offer) -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(key)

        assert app.result == InterventionChoice(offer)


async def test_an_offer_is_chosen_by_moving_to_it() -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("down", "enter")

        assert app.result == InterventionChoice(Offer.RETRY)


async def test_escape_leaves_the_intervention_open_without_a_choice() -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("escape")

        assert app.result is None


async def test_giving_the_goal_up_is_confirmed_by_another_key() -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("D", "D", "D", "escape")
        assert app.result is OPEN

        await pilot.press("D", "y")
        assert app.result == InterventionChoice(Offer.ABORT)


async def test_a_disabled_offer_tells_why() -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("t")

        assert app.result is OPEN
        assert "no terminal here" in app.text("#line")


@pytest.mark.parametrize(("key", "offer"), [("h", Offer.GIVE_RESULT), ("p", Offer.REPLACE_REST)])
async def test_an_offer_with_a_text_asks_for_it(key: str, offer: Offer) -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(key)
        await pilot.press("enter")
        assert app.result is OPEN
        assert "Nothing is written yet" in app.text("#line")

        await pilot.press("x", "A", "e", "enter")
        assert app.result == InterventionChoice(offer, "xAe")


async def test_escape_while_writing_goes_back_to_the_offers() -> None:
    app = DialogApp(InterventionDialog(MODEL))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("h", "x", "escape")
        assert app.result is OPEN

        await pilot.press("r")
        assert app.result == InterventionChoice(Offer.RETRY)


# Step editor


def no_problems(tool: str, command: str, args: str) -> list[str]:
    return []


async def test_the_editor_gives_the_changed_step() -> None:
    app = DialogApp(StepEditor(StepDraft("Edit", "simple_coder", "run", {"a": 1}), no_problems))
    async with app.run_test(size=(100, 30)) as pilot:
        app.dialog.query_one("#command", Input).value = "write"
        app.dialog.query_one("#args", TextArea).text = '{"path": "main.py"}'
        await pilot.press("ctrl+s")

        assert app.result == StepEdit("simple_coder", "write", {"path": "main.py"})


async def test_an_unchanged_step_is_no_edit() -> None:
    app = DialogApp(StepEditor(StepDraft("Edit", "simple_coder", "run", {"a": 1}), no_problems))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("ctrl+s")

        assert app.result is None


async def test_problems_are_shown_as_they_arise_and_prevent_saving() -> None:
    def check(tool: str, command: str, args: str) -> list[str]:
        return [] if command == "run" else [f"{command} is not a command of {tool}"]

    app = DialogApp(StepEditor(StepDraft("Edit", "simple_coder", "run", {}), check))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert app.text("#problems") == "✓ can be saved"

        app.dialog.query_one("#command", Input).value = "runn"
        await pilot.pause()
        assert app.text("#problems") == "✗ runn is not a command of simple_coder"
        await pilot.press("ctrl+s")
        assert app.result is OPEN

        app.dialog.query_one("#command", Input).value = "run"
        app.dialog.query_one("#args", TextArea).text = '{"a": }'
        await pilot.pause()
        assert app.text("#problems").startswith("✗ this is no valid JSON: line 1, column 7:")


async def test_escape_drops_changes_only_when_pressed_twice() -> None:
    app = DialogApp(StepEditor(StepDraft("Edit", "simple_coder", "run", {}), no_problems))
    async with app.run_test(size=(100, 30)) as pilot:
        app.dialog.query_one("#command", Input).value = "write"
        await pilot.pause()
        await pilot.press("escape")
        assert app.result is OPEN
        assert "Unsaved changes: esc again drops them, ctrl+s saves them" in app.text("#problems")
        app.dialog.query_one("#args", TextArea).text = '{"a": }'
        await pilot.pause()
        await pilot.press("escape")
        assert "ctrl+s cannot save them: this is no valid JSON: line 1, column 7" in app.text("#problems")

        await pilot.press("escape")
        assert app.result is None


@pytest.mark.parametrize("value", ["\x1b[2J", "\u202e", "\x9b", "日本", "a\nb", "\U000e0041", '"\\'])
def test_arguments_survive_the_editor_and_hide_nothing(value: str) -> None:
    text = args_text({"content": value})

    assert parse_args(text) == {"content": value}
    assert all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize(
    ("text", "says"), [("[1]", "one JSON object"), ("{", "line 1, column 2"), ("[" * 100_000, "too deeply")]
)
def test_wrong_arguments_are_explained(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_args(text)


# Confirm and help


@pytest.mark.parametrize(("key", "result"), [("y", True), ("n", False), ("escape", False)])
async def test_confirming_needs_its_own_key(key: str, result: bool) -> None:
    app = DialogApp(ConfirmDialog("Stop it?"))
    async with app.run_test() as pilot:
        await pilot.press("enter", "space")
        assert app.result is OPEN
        assert not app.dialog.query_one(".-question").border_subtitle  # which would be a hole

        await pilot.press(key)
        assert app.result is result


HELP = {"Steering": [("space", "run or pause"), ("s", "step one action")], "Panes": [("y", "copy the row")]}


async def test_help_shows_groups_and_what_the_pane_says() -> None:
    app = DialogApp(HelpDialog(HELP, "## Goals\nWhat the agent wants."))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        lines = [plain(line).strip() for line in app.dialog.query_one(FactsPane).lines_for(60)]

        assert lines[:2] == ["Goals", "What the agent wants."]
        assert "Steering" in lines
        assert ["space", "run", "or", "pause"] in [line.split() for line in lines]


async def test_help_can_be_filtered_and_escape_closes_it() -> None:
    app = DialogApp(HelpDialog(HELP, "## Goals\nWhat the agent wants."))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"copy", "enter")
        await pilot.pause()
        lines = [plain(line).strip() for line in app.dialog.query_one(FactsPane).lines_for(60)]
        assert lines[0] == "Panes"
        assert len(lines) == 2

        await pilot.press("escape")
        assert app.result is None


# Hand-over

CHANGED = HandoverModel(
    (
        OfferedBelief("files.changed", True, "changed: cart.py"),
        OfferedBelief("files.added", True, "added: \x1b]52;c;eA==\x07[red]evil[/] \u202egnp.txt"),
    ),
    goes_on="./shop with .venv",
    stays="./",
)


def handover_lines(app: DialogApp) -> list[str]:
    changes = app.dialog.query_one(ChangeList)
    first, end = changes.line_total()
    return [changes.mark(n).text + " " + plain(changes.line(n)).rstrip() for n in range(first, end)]


async def test_a_handover_accepts_everything_unless_told_otherwise() -> None:
    app = DialogApp(HandoverDialog(CHANGED))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        first, second, third = handover_lines(app)
        assert first.startswith("✓ changed: cart.py")
        assert second.startswith("✓ added: [red]evil[/] gnp.txt")
        assert third == "✓ continues in ./shop with .venv"

        await pilot.press("enter")
        assert app.result == HandoverDecision(("files.changed", "files.added"), follow=True)


async def test_a_handover_takes_only_what_is_marked() -> None:
    app = DialogApp(HandoverDialog(CHANGED))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("down", "space", "down", "space")
        assert [line[0] for line in handover_lines(app)] == ["✓", "–", "–"]
        assert handover_lines(app)[2] == "– continues in ./"

        await pilot.press("enter")
        assert app.result == HandoverDecision(("files.changed",), follow=False)


async def test_a_handover_marks_none_or_all_at_once() -> None:
    app = DialogApp(HandoverDialog(CHANGED))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("minus")
        assert [line[0] for line in handover_lines(app)] == ["–", "–", "–"]
        await pilot.press("plus", "minus", "enter")
        assert app.result == HandoverDecision((), follow=False)


async def test_a_handover_can_be_settled_by_the_mouse() -> None:
    app = DialogApp(HandoverDialog(CHANGED))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click(ChangeList, offset=(5, 0))
        assert handover_lines(app)[0].startswith("–")
        await pilot.click(".-keys", offset=(2, 0))
        assert app.result == HandoverDecision(("files.added",), follow=True)


async def test_a_handover_without_another_place_follows() -> None:
    app = DialogApp(HandoverDialog(HandoverModel(CHANGED.changes)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("minus", "enter")
        assert app.result == HandoverDecision((), follow=True)


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
async def test_all_of_a_long_handover_can_be_read(size: tuple[int, int]) -> None:
    many = tuple(f"some/directory/file-{number:02}.txt" for number in range(50))
    model = HandoverModel(
        (OfferedBelief("files.added", True, "added: " + ", ".join(many)), *CHANGED.changes), "./x", "./"
    )
    app = DialogApp(HandoverDialog(model))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        changes = app.dialog.query_one(ChangeList)
        seen: set[int] = set()
        for _ in range(changes.line_total()[1] + 3):
            seen |= set(range(changes.top, changes.top + changes.content_size.height))
            await pilot.press("down")
        seen |= set(range(changes.top, changes.top + changes.content_size.height))
        assert seen >= set(range(changes.line_total()[1]))
        await pilot.press("space", "enter")
        assert app.result == HandoverDecision(("files.added", "files.changed", "files.added"), follow=False)


async def test_escape_leaves_a_handover_open() -> None:
    app = DialogApp(HandoverDialog(CHANGED))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("space", "escape")
        assert app.result is None


@pytest.mark.parametrize(
    ("dialog", "key", "result"),
    [
        (HandoverDialog(CHANGED, unasked=True), "enter", HandoverDecision(("files.changed", "files.added"))),
        (InterventionDialog(MODEL, unasked=True), "x", InterventionChoice(Offer.SKIP)),
        (GeneratedPlansDialog(Generation("gen1", "+!a"), 1, lambda _text: [], unasked=True), "escape", None),
    ],
)
async def test_keys_that_were_meant_for_what_a_dialog_covers_choose_nothing(
    dialog: BoxDialog[Any], key: str, result: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, "DEAF_S", 3_600.0)
    app = DialogApp(dialog)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key, key)
        assert app.result is OPEN
        assert dialog.query_one(".-question").border_subtitle == Content(box.JUST_OPENED)

        dialog.deaf_until = 0.0
        await pilot.press(key)
        assert app.result == result


# The last word at the shell


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (["enter"], HandBack()),
        ([*"did it", "enter"], HandBack("did it")),
        (["x", "ctrl+right_square_bracket"], HandBack("x")),
        (["x", "tab"], HandBack(looks_elsewhere=True)),
        (["x", "escape"], None),
    ],
)
async def test_the_last_word_at_the_shell(keys: list[str], result: HandBack | None) -> None:
    app = DialogApp(HandBackDialog())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*keys)
        assert app.result == result


# The mouse


class Chooser(box.ListDialog[tuple[str, ...]]):
    KEYS = (box.DialogKey("", "", "open", shown="enter"),)
    chosen = ""

    def rows(self) -> list[Row]:
        return [Row(name, (Piece(name),)) for name in self.model]

    @on(RowChosen)
    def _chosen(self, event: RowChosen) -> None:
        self.chosen = event.key


async def test_keys_that_a_dialog_names_can_be_clicked_on_its_last_line_and_in_its_border() -> None:
    chooser = Chooser(("one", "two"))
    app = DialogApp(chooser)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.click(chooser.keys, offset=(1, 0))
        await pilot.pause()
        assert chooser.chosen == "one"
        frame = chooser.query("Vertical").first().region
        await pilot.click(offset=(frame.right - 5, frame.bottom - 1))
        await pilot.pause()
    assert app.result is None


async def test_the_theme_under_the_cursor_is_shown_at_once_and_escape_goes_back() -> None:
    themes = ThemesDialog(("nord", "textual-dark", "textual-light"))
    app = DialogApp(themes)
    async with app.run_test() as pilot:
        await pilot.press("down")
        assert app.theme == "textual-light"
        await pilot.press("up", "up")
        assert app.theme == "nord"
        await pilot.press("escape")
        await pilot.pause()
        assert (app.theme, app.result) == ("textual-dark", None)
        app.push_screen(themes := ThemesDialog(("nord", "textual-dark")))
        await pilot.press("up", "enter")
        await pilot.pause()
        assert app.theme == "nord"
        assert not themes.is_attached
