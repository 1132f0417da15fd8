"""Working memory: what the agent has in mind now, and what it believes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from engine.domain.text import clean_line
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces, bar
from widgets.rows import Row, RowPane

MOST_RELEVANT = 10.0
BAR_CELLS = 5
LEVELS_FROM = 44
"""Cells of a line from which on it has room for a memory's level beside its type."""
MEMORY = "memory:"
"""How keys of rows begin that are memories."""


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """What the agent works on, a result, or a belief."""

    id: str
    kind: str
    """`goal`, `next`, `result`, `belief`, …"""
    text: str
    focused: bool = False
    """True for what the agent's attention is on."""
    confidence: float | None = None
    """Between 0 and 1."""
    fresh: bool = False
    """True when it changed in this tick."""


@dataclass(frozen=True, slots=True)
class RememberedLine:
    """A memory that is in mind."""

    id: str
    text: str
    level: str
    """`working`, `episodic`, `semantic` or `procedural`."""
    type: str
    """`fact`, `action_log`, `insight`, …"""
    relevance: float
    """From 0 to 10, now."""
    age: str
    """How long ago it came, in a word: `now`, `3m`, `2h`."""
    focal: bool = False
    pinned: bool = False
    """True when it is never evicted."""


@dataclass(frozen=True, slots=True)
class WorkingMemoryModel:
    """What the pane shows."""

    entries: tuple[MemoryLine, ...] = ()
    memories: tuple[RememberedLine, ...] = ()
    """In mind, the focal one first, then the most relevant."""
    capacity: int = 0
    """Memories that may be in mind; 0 where nothing remembers."""
    hint: str = ""
    """What is said where no memory is in mind."""
    notice: Notice | None = None


class Shown(StrEnum):
    """Which part of it is shown."""

    ALL = "all"
    MIND = "in mind"
    BELIEFS = "beliefs"


class WorkingMemory(RowPane):
    """What is worked on, the memories in mind, and the beliefs."""

    BORDER_TITLE = "3 Working memory"
    MARKS = True
    BINDING_GROUP_TITLE = "Working memory"
    EMPTY = "What the agent keeps in mind will appear here once it runs. Press space to run it."
    HELP = """## Working memory
What the agent has in mind now. ★ is its focus; + is new in this tick; the percentage is its confidence.
Below that the memories in mind: ★ the one in focus, ◆ pinned ones, which are never evicted. The bar is how
relevant it is now, then its age. p pins a memory or lets it go, E takes it out of mind, f brings it into
focus, enter opens it in the memory browser (M). v shows all, only what is in mind, or only beliefs.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "p", "pin", "Pin", show=False, id="memory.pin", tooltip="Pin the memory in mind, or let it go"
        ),
        Binding(
            "E,delete", "evict", "Evict", show=False, id="memory.evict", tooltip="Take the memory out of mind"
        ),
        Binding(
            "f", "focus_memory", "Focus", show=False, id="memory.focus", tooltip="Bring the memory into focus"
        ),
        Binding(
            "v",
            "show_part",
            "Part",
            show=False,
            id="memory.part",
            tooltip="Show all, what is in mind, or beliefs",
        ),
    ]

    @dataclass
    class MemorySelected(Message):
        """The cursor is on an entry."""

        memory_id: str

    @dataclass
    class OpenRequested(Message):
        """The operator wants to read a memory."""

        memory_id: str

    @dataclass
    class PinRequested(Message):
        """The operator wants a memory pinned, or no longer so."""

        memory_id: str
        pinned: bool

    @dataclass
    class EvictRequested(Message):
        """The operator wants a memory out of mind."""

        memory_id: str

    @dataclass
    class FocusRequested(Message):
        """The operator wants a memory in focus."""

        memory_id: str

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._model = WorkingMemoryModel()
        self._part = Shown.ALL
        self._levels = False

    def show(self, model: WorkingMemoryModel) -> None:
        """Show this model."""
        if model == self._model:
            return
        self._model = model
        self.set_notice(model.notice)
        self._arrange()

    def on_resize(self) -> None:
        """Show levels where there is room for them."""
        super().on_resize()
        if self._levels != self._roomy:
            self._arrange()

    def row_highlighted(self, key: str) -> None:
        """Tell which entry is looked at."""
        self.post_message(self.MemorySelected(key.removeprefix(MEMORY)))

    def row_chosen(self, key: str) -> None:
        """Open a memory."""
        if key.startswith(MEMORY):
            self.post_message(self.OpenRequested(key.removeprefix(MEMORY)))

    def action_show_part(self) -> None:
        """Show the next part."""
        parts = tuple(Shown)
        self._part = parts[(parts.index(self._part) + 1) % len(parts)]
        self._arrange()

    def action_pin(self) -> None:
        """Pin the memory under the cursor, or let it go."""
        if (one := self._under_cursor()) is not None:
            self.post_message(self.PinRequested(one.id, not one.pinned))

    def action_evict(self) -> None:
        """Take the memory under the cursor out of mind."""
        if (one := self._under_cursor()) is not None:
            self.post_message(self.EvictRequested(one.id))

    def action_focus_memory(self) -> None:
        """Bring the memory under the cursor into focus."""
        if (one := self._under_cursor()) is not None:
            self.post_message(self.FocusRequested(one.id))

    def _under_cursor(self) -> RememberedLine | None:
        ident = self.cursor.removeprefix(MEMORY) if self.cursor.startswith(MEMORY) else None
        return next((one for one in self._model.memories if one.id == ident), None)

    @property
    def _roomy(self) -> bool:
        return self.text_width >= LEVELS_FROM

    def _arrange(self) -> None:
        model, self._levels = self._model, self._roomy
        kinds = ("belief", "result")
        beliefs, results = ([_row(one) for one in model.entries if one.kind == kind] for kind in kinds)
        present = [_row(entry) for entry in model.entries if entry.kind not in kinds]
        mind = [_memory_row(one, self._levels) for one in model.memories]
        if model.capacity and not mind and model.hint:
            mind = [Row("hint", (Piece(clean_line(model.hint), "dim"),), selectable=False, most=4)]
        rows = present if self._part is Shown.ALL else []
        if self._part is not Shown.BELIEFS and mind and (model.memories or model.entries):
            rows += [_heading("in mind"), *mind]
        if self._part is Shown.ALL and results:
            rows += [*([_heading("lately")] if mind else []), *results]
        if self._part is not Shown.MIND and beliefs:
            rows += [*([_heading("beliefs")] if mind or self._part is Shown.BELIEFS else []), *beliefs]
        self.set_caption_text(self._counted())
        self.set_rows(rows)

    def _counted(self) -> str:
        model = self._model
        count = f"{len(model.memories)}/{model.capacity}" if model.capacity else ""
        part = "" if self._part is Shown.ALL else f"only {self._part} (v)"
        return " · ".join(part for part in (count, part) if part)


def _heading(text: str) -> Row:
    return Row(f"heading:{text}", (Piece(text, "heading"),), selectable=False)


def _row(entry: MemoryLine) -> Row:
    kind, text = clean_line(entry.kind), clean_line(entry.text)
    mark = Piece("★", "accent") if entry.focused else Piece("+", "success") if entry.fresh else Piece(" ")
    sure = "" if entry.confidence is None else f"{entry.confidence:.0%}"
    return Row(
        entry.id,
        (Piece(f"{kind}: " if kind else "", "dim"), Piece(text, "strong" if entry.focused else "text")),
        tail=(Piece(sure, "dim"),) if sure else (),
        mark=mark,
        indent=2,
        most=2,
        copy=text,
    )


def _memory_row(one: RememberedLine, levels: bool) -> Row:
    text, kind = clean_line(one.text), clean_line(one.type).replace("_", " ")
    named = f"{clean_line(one.level)} {kind}: " if levels else f"{kind}: "
    mark = Piece("★", "accent") if one.focal else Piece("◆", "warning") if one.pinned else Piece(" ")
    return Row(
        MEMORY + one.id,
        (Piece(named, "dim"), Piece(text, "strong" if one.focal else "text")),
        tail=_tail(one),
        mark=mark,
        indent=2,
        most=2,
        copy=text,
    )


def _tail(one: RememberedLine) -> Pieces:
    """How relevant it is, and its age; a focal memory's pin stands here, as its mark is the star."""
    pin = (Piece("◆ ", "warning"),) if one.pinned and one.focal else ()
    style = "success" if one.relevance >= 0.6 * MOST_RELEVANT else "text"
    return (
        *pin,
        *bar(one.relevance / MOST_RELEVANT, BAR_CELLS, style=style),
        Piece(f" {clean_line(one.age):>3}", "dim"),
    )
