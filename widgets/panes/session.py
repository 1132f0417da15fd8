"""The sandbox session: what the agent's commands print, in their own colours, as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.strip import Strip

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.line_pane import LinePane, Notice
from widgets.base.text_layout import Piece, Pieces
from widgets.terminal.ansi_stream import AnsiLine, AnsiStream, segments

ChunkKind = Literal["prompt", "out", "err", "note"]

CHUNK_MARKS: dict[str, Piece] = {
    "prompt": Piece("❯", "accent"),
    "out": Piece(" "),
    "err": Piece("┆", "error"),
    "note": Piece("·", "dim"),
}
CHUNK_STYLES = {"prompt": "strong", "out": "text", "err": "text", "note": "dim"}


@dataclass(frozen=True, slots=True)
class SessionChunk:
    """A piece of the session as it came; it may end anywhere."""

    text: str
    kind: ChunkKind = "out"
    """`prompt` is a prompt with its command, a line of its own; `note` is the cockpit's own remark."""
    source: str = ""
    """The background job that it comes from; empty for what the agent does itself."""


@dataclass(frozen=True, slots=True)
class SessionModel:
    """What the pane says about the session beside its lines."""

    running: bool = False
    exit_status: int | None = None
    """Of the last command; None before the first one ended."""
    duration_s: float | None = None
    """Of the last command, or so far."""
    bytes_hidden: int = 0
    """Output that was not kept."""
    held_by: str = ""
    """Who holds the session's keyboard, when it is not the agent."""
    jobs: int = 0
    """Background jobs that run."""
    notice: Notice | None = None


class SandboxPane(LinePane):
    """The live session; it follows the end until the reader scrolls up."""

    BORDER_TITLE = "5 Sandbox session"
    BINDING_GROUP_TITLE = "Session"
    FOLLOWS = MARKS = LOADS = True
    EMPTY = (
        "What the agent runs and what it prints will appear here. Press s for one step, "
        "or : and type ! ls to call the sandbox yourself."
    )

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._stream = AnsiStream()
        self._model = SessionModel()
        self._left = 0
        self._strips: LRUCache[tuple[int, int, int], Strip] = LRUCache(512)

    # Input

    def append(self, chunks: Sequence[SessionChunk]) -> None:
        """Take a batch of output; one repaint for all of it."""
        if not chunks:
            return
        self.loaded()
        before = self._stream.end
        for chunk in chunks:
            if chunk.kind in ("prompt", "note"):
                self._stream.end_line()
                self._stream.feed(chunk.text.rstrip("\n"), chunk.kind, chunk.source)
                self._stream.end_line()
            else:
                self._stream.feed(chunk.text, chunk.kind, chunk.source)
        self.lines_changed(self._stream.end - before)

    def show(self, model: SessionModel) -> None:
        """Show how the session stands."""
        self.loaded()
        if model == self._model:
            return
        self._model = model
        self.set_notice(model.notice)
        self.set_class(bool(model.held_by), "-held")
        self.set_caption_text(" · ".join(_caption(model)))

    def clear(self) -> None:
        """Forget all lines, as when another agent is shown."""
        self._stream.clear()
        self._left = 0
        self.lines_changed()

    # LinePane

    def line_total(self) -> tuple[int, int]:
        """Line numbers continue when old lines are dropped."""
        return self._stream.first, self._stream.end

    def line(self, number: int) -> Pieces:
        """A line, without colours; `draw` adds them."""
        return (Piece(self._stream.line(number).text),)

    def mark(self, number: int) -> Piece:
        """Whether a command, its output or its errors."""
        return CHUNK_MARKS[self._stream.line(number).kind]

    def notify_style_update(self) -> None:
        """Forget drawn lines too."""
        self._strips.clear()
        super().notify_style_update()

    def draw(self, number: int, pieces: Pieces, under: bool) -> Strip:
        """A line in its colours; finished lines are drawn once per theme and width."""
        if self.text_selection is not None or number >= self._stream.closed:
            return self._draw(number)
        key = number, self.text_width, self._left
        if (strip := self._strips.get(key)) is None:
            strip = self._strips[key] = self._draw(number)
        return strip

    def _draw(self, number: int) -> Strip:
        line, width = self._stream.line(number), self.text_width
        base = self.painter.named(CHUNK_STYLES[line.kind])
        body = Strip(segments(line.text, line.spans, base))
        total = body.cell_length
        body = self.painter.selected(body, number).apply_offsets(0, number)
        if total > self._left + width > 0:
            more = Segment("…", self.painter.named("dim"))
            body = Strip([*body.crop(self._left, self._left + width - 1), more], width)
        else:
            body = body.crop(self._left, self._left + width).adjust_cell_length(width, base)
        mark = CHUNK_MARKS[line.kind]
        head = Segment(f" {mark.text} ", self.painter.named(str(mark.style)))
        return Strip([head, *body], self.gutter_width + width)

    # The operator

    def action_left(self) -> None:
        """Show what is further left."""
        self._scroll_columns(self._left - max(8, self.text_width // 2))

    def action_right(self) -> None:
        """Show the rest of long lines."""
        widest = max(
            (Strip(segments(line.text, line.spans, Style())).cell_length for line in self._visible()),
            default=0,
        )
        self._scroll_columns(min(self._left + max(8, self.text_width // 2), max(0, widest - self.text_width)))

    def _visible(self) -> list[AnsiLine]:
        end = min(self._stream.end, self.top + self.content_size.height)
        return [self._stream.line(number) for number in range(max(self.top, self._stream.first), end)]

    def _scroll_columns(self, left: int) -> None:
        if max(0, left) != self._left:
            self._left = max(0, left)
            self.refresh()


def _caption(model: SessionModel) -> list[str]:
    parts = [f"held by {clean_line(model.held_by)}"] if model.held_by else []
    if model.running:
        parts.append("▶ running")
    elif model.exit_status is not None:
        parts.append("✓ exit 0" if model.exit_status == 0 else f"✗ exit {model.exit_status}")
    if model.duration_s is not None:
        parts.append(f"{model.duration_s:.1f} s")
    if model.bytes_hidden:
        parts.append(f"{size_text(model.bytes_hidden)} not shown")
    if model.jobs:
        parts.append(f"{model.jobs} job{'s' * (model.jobs > 1)}")
    return parts


def size_text(count: int) -> str:
    """A number of bytes in words: `812 B`, `12.5 kB`, `3.1 MB`."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
