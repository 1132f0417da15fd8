"""The pane of one open shell, wired to its terminal."""

from __future__ import annotations

from collections.abc import Callable

from textual import on

from engine.sandbox.terminal import Terminal
from widgets import TerminalPane


class ShellPane(TerminalPane):
    """Shows what the terminal prints, whether it is in place or not, and gives it what the operator does."""

    def __init__(self, terminal: Terminal) -> None:
        # Out of sight until it is put into its place.
        super().__init__(classes="session -away")
        self.terminal = terminal
        self._leave: Callable[[], None] | None = None

    def on_mount(self) -> None:
        """Follow the terminal."""
        self._leave = self.terminal.follow(self.put)

    def on_unmount(self) -> None:
        """Follow it no longer."""
        if self._leave is not None:
            self._leave()

    @on(TerminalPane.Typed)
    def _typed(self, event: TerminalPane.Typed) -> None:
        event.stop()
        self.terminal.write(event.data)

    @on(TerminalPane.Answered)
    def _answered(self, event: TerminalPane.Answered) -> None:
        event.stop()
        self.terminal.answer(event.data)

    @on(TerminalPane.Resized)
    def _resized(self, event: TerminalPane.Resized) -> None:
        event.stop()
        self.terminal.resize(event.rows, event.columns)
