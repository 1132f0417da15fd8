from __future__ import annotations

from cockpit_samples import complete
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from app.cockpit.terminal_app import TerminalApp
from widgets.base.line_pane import Requested
from widgets.panes.command_bar import CommandBar, Completion


class BarApp(TerminalApp[None]):
    CSS = "Screen { align: left bottom; }"

    def __init__(self, bar: CommandBar) -> None:
        super().__init__()
        self.bar = bar
        self.entered: list[str] = []
        self.left = 0

    def compose(self) -> ComposeResult:
        yield self.bar

    def on_mount(self) -> None:
        self.bar.focus()

    def on_requested(self, event: Requested) -> None:
        if event.what == "entered":
            self.entered.append(str(event.args[0]))
            self.bar.clear()
        self.left += event.what == "leave"

    def message(self) -> str:
        visual = self.query_one("#message", Static).visual
        assert isinstance(visual, Content)
        return visual.plain


HISTORY = ["evolve the summarizer", "run tests", "evolve the parser"]


async def test_enter_hands_over_the_cleaned_command() -> None:
    app = BarApp(CommandBar())
    async with app.run_test() as pilot:
        app.bar.input.value = "  go\x1b[2J  on \u202e "
        await pilot.press("enter")
        await pilot.press("enter")

        assert app.entered == ["go  on"]
        assert app.bar.input.value == ""


async def test_what_is_typed_right_behind_an_enter_belongs_to_the_next_line() -> None:
    app = BarApp(CommandBar())
    async with app.run_test() as pilot:
        for key, letter in (("a", "a"), ("enter", "\r"), ("b", "b"), ("enter", "\r"), ("c", "c")):
            app.post_message(events.Key(key, letter))  # all at once, as a terminal far away sends them
        await pilot.pause()

        assert app.entered == ["a", "b"]
        assert app.bar.input.value == "c"


async def test_history_goes_back_and_forth_and_keeps_what_was_being_typed() -> None:
    app = BarApp(CommandBar(history=HISTORY))
    async with app.run_test() as pilot:
        await pilot.press("n", "e", "w", "up")
        assert app.bar.input.value == "evolve the parser"
        await pilot.press("up", "up", "up", "up")
        assert app.bar.input.value == "evolve the summarizer"
        await pilot.press("down", "down", "down", "down")
        assert app.bar.input.value == "new"


async def test_entered_commands_join_the_history_once() -> None:
    app = BarApp(CommandBar(history=["a"]))
    async with app.run_test() as pilot:
        await pilot.press("a", "enter", "b", "enter", "b", "enter")

        assert app.bar.history == ("a", "b")


async def test_escape_leaves_the_bar_empty_and_up_gives_the_line_back() -> None:
    app = BarApp(CommandBar(complete))
    async with app.run_test() as pilot:
        await pilot.press("r", "escape")

        assert app.left == 1
        assert app.bar.input.value == ""
        assert app.bar.completions == ()
        await pilot.press("up")
        assert app.bar.input.value == "r"


async def test_typing_offers_completions_and_tab_goes_through_them() -> None:
    app = BarApp(CommandBar(complete))
    async with app.run_test() as pilot:
        await pilot.press("r")
        assert [each.text for each in app.bar.completions] == ["run", "rewind", "retry"]
        assert app.query_one("CompletionList").display

        values = []
        for _ in range(4):
            await pilot.press("tab")
            values.append(app.bar.input.value)
        await pilot.press("shift+tab")

        assert values == ["run", "rewind", "retry", "run"]
        assert app.bar.input.value == "retry"


async def test_tab_fills_in_what_all_completions_share() -> None:
    app = BarApp(CommandBar(complete))
    async with app.run_test() as pilot:
        await pilot.press("r", "e", "tab")
        assert app.bar.input.value == "rewind"

        app.bar.input.value = ""
        await pilot.press("e", "tab")
        assert app.bar.input.value == "evolve"
        assert not app.query_one("CompletionList").display


async def test_a_click_takes_a_completion() -> None:
    app = BarApp(CommandBar(complete))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        await pilot.pause()
        await pilot.click("CompletionList", offset=(5, 2))
        await pilot.pause()

        assert app.bar.input.value == "rewind"
        assert app.focused is app.bar.input


async def test_completions_with_hostile_text_are_shown_harmlessly() -> None:
    app = BarApp(
        CommandBar(lambda line: [Completion("[/]", "[@click=app.quit]x[/]"), Completion("\x1b[2J", "\x9b")])
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("x", "tab", "tab", "tab")
        await pilot.pause()

        assert app.is_running


async def test_the_message_tells_success_from_error_by_sign() -> None:
    app = BarApp(CommandBar())
    async with app.run_test():
        assert "tab completes" in app.message()
        app.bar.show("breakpoint set on step 3", "ok")
        assert app.message() == "✓ breakpoint set on step 3"
        app.bar.show("no step 9\nin this plan", "error")
        assert app.message() == "✗ error: no step 9 in this plan"
