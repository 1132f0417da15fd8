"""How an operator is notified: the terminal's bell, its own notifications, else the desktop's.

Sequences go only to terminals that are known to take them, and to the desktop only where there is none, so
that nothing is told twice. Texts are cleaned here: none of their characters can end or begin a sequence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from engine.domain.text import clean_line
from engine.inquiry.notices import Notice, Rule

TITLE_LIMIT, TEXT_LIMIT = 60, 200
BELL = "\a"
_OSC_9 = frozenset({"iterm.app", "wezterm", "ghostty"})
"""Values of TERM_PROGRAM, in small letters, of terminals that show OSC 9."""


class Notifier(Protocol):
    """Takes what is to be told."""

    async def tell(self, notice: Notice) -> None:
        """Tell it; what fails is passed over, as it stands on the screen too."""


class TerminalNotifier:
    """Rings the bell and writes the sequence that the terminal takes.

    Args:
        write: takes text for the terminal, as it is.
        environ: the environment, which says what terminal it is.
        desktop: tells the desktop, where the terminal takes no sequence; None where there is no desktop.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        environ: Mapping[str, str],
        desktop: Callable[[str, str], Awaitable[None]] | None,
    ) -> None:
        self._write = write
        self._form = sequence_of(environ)
        self._desktop = desktop

    async def tell(self, notice: Notice) -> None:
        """Ring, and say it once."""
        title, text = title_of(notice), text_of(notice)
        self._write(BELL)
        if self._form == 9:
            self._write(f"\x1b]9;{title}: {text}\x1b\\")
        elif self._form == 777:
            # A semicolon would end the title.
            self._write(f"\x1b]777;notify;{title.replace(';', ',')};{text}\x1b\\")
        elif self._desktop is not None:
            await self._desktop(title, text)


def sequence_of(environ: Mapping[str, str]) -> int:
    """The sequence that a terminal takes: 9, 777, or 0 for none."""
    term = environ.get("TERM", "").casefold()
    if "TMUX" in environ or term.startswith(("tmux", "screen")):
        return 0  # it would keep the sequence to itself
    if environ.get("TERM_PROGRAM", "").casefold() in _OSC_9 or "kitty" in term or "ghostty" in term:
        return 9
    if "VTE_VERSION" in environ or term.startswith(("rxvt", "foot")):
        return 777
    return 0


def title_of(notice: Notice) -> str:
    """What kind of notice it is, and of whom."""
    what = "needs you" if notice.rule is Rule.NEEDS_YOU else "done"
    return f"pilothouse: {clean_line(notice.agent, limit=TITLE_LIMIT)} {what}"


def text_of(notice: Notice) -> str:
    """What it says, on a short line."""
    return clean_line(notice.text, limit=TEXT_LIMIT)
