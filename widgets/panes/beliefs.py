"""The beliefs of an agent with their sources, and its working memory: what it has in mind now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.facts import ModelPane
from widgets.base.line_pane import Notice
from widgets.base.rows import Row, heading
from widgets.base.text_layout import Piece, Pieces, bar, cut_text, pad

PERCEPT, SELF = "percept", "self"
ORIGINS: dict[str, tuple[str, str]] = {PERCEPT: ("→", "accent"), SELF: ("●", "success")}
"""How beliefs from the senses and the agent's own are marked; all others are from agents."""
FROM_AGENTS = ("@", "warning")
SOURCE_CELLS, EVENT_CELLS = 11, 18
SOURCES_FROM, EVENTS_FROM = 36, 74
"""Cells of a line from which on it has room for the sources, and for the event too."""


@dataclass(frozen=True, slots=True)
class BeliefLine:
    """One belief as the pane shows it."""

    literal: str
    """Without its annotations; each literal is there once."""
    sources: tuple[str, ...] = (SELF,)
    """`percept`, `self` or the names of agents."""
    since: int = 0
    """The tick in which it came."""
    event: str = ""
    """What made it, in a word or two."""
    fresh: bool = False
    """True when it came or changed in this tick."""


@dataclass(frozen=True, slots=True)
class BeliefsModel:
    """What the pane shows."""

    beliefs: tuple[BeliefLine, ...] = ()
    """In the order they came, the oldest first."""
    notice: Notice | None = None


class BeliefsPane(ModelPane[BeliefsModel]):
    """The beliefs, newest first."""

    BORDER_TITLE = "3 Beliefs"
    MARKS = True
    BINDING_GROUP_TITLE = "Beliefs"
    EMPTY = "What the agent believes will appear here once it perceives. Press s to step it."
    HELP = """## Beliefs
→ perceived, ● the agent's own, @ from another agent; + came or changed in this tick.
To the right: the sources, the tick since which it is believed, and what made it.
Newest first. Enter asks why it is believed.
"""
    _model = BeliefsModel()
    _known: Mapping[str, tuple[BeliefLine, Row]] = {}
    _columns = (False, False)

    def on_resize(self) -> None:
        """Show as much of the provenance as there is room for."""
        if self._room() != self._columns:
            self.make_rows()

    def row_chosen(self, key: str) -> None:
        """Tell which belief was chosen."""
        self.request("belief_chosen", key)

    def _room(self) -> tuple[bool, bool]:
        """Whether there is room for the sources, and for the events."""
        return self.text_width >= SOURCES_FROM, self.text_width >= EVENTS_FROM

    def make_rows(self) -> None:
        """Make the rows."""
        if (room := self._room()) != self._columns:
            self._columns, self._known = room, {}
        known: dict[str, tuple[BeliefLine, Row]] = {}
        for belief in self._model.beliefs:
            before = self._known.get(belief.literal)
            same = before is not None and (before[0] is belief or before[0] == belief)
            known[belief.literal] = before if before and same else (belief, _belief_row(belief, *room))
        self._known = known
        rows = [row for _, row in known.values()]
        rows.reverse()
        self.set_caption_text(f"{len(rows):,} · newest first" if rows else "")
        self.set_rows(rows)


def _belief_row(belief: BeliefLine, sources: bool, events: bool) -> Row:
    origin = next((source for source in ORIGINS if source in belief.sources), "")
    glyph, style = ORIGINS.get(origin, FROM_AGENTS)
    text = clean_line(belief.literal)
    tail: list[Piece] = []
    if sources:
        tail.append(Piece(pad(_named(belief.sources), SOURCE_CELLS), "dim"))
    tail.append(Piece(f"{belief.since:>6}", "dim"))
    if events:
        tail.append(Piece("  " + pad(clean_line(belief.event), EVENT_CELLS), "dim"))
    return Row(
        belief.literal,
        (Piece(glyph + " ", style), Piece(text, "strong" if belief.fresh else "text")),
        tail=tuple(tail),
        mark=Piece("+", "success") if belief.fresh else Piece(" "),
        copy=text,
    )


def _named(sources: tuple[str, ...]) -> str:
    """The first source, and how many more there are."""
    if not sources:
        return "no source"
    more = f" +{len(sources) - 1}" if len(sources) > 1 else ""
    return cut_text(clean_line(sources[0]), SOURCE_CELLS - len(more) - 1) + more


MOST_RELEVANT = 10.0
BAR_CELLS = 5
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


class WorkingMemory(ModelPane[WorkingMemoryModel]):
    """What is worked on, the memories in mind, and the beliefs."""

    BORDER_TITLE = "3 Working memory"
    MARKS = True
    BINDING_GROUP_TITLE = "Working memory"
    EMPTY = "What the agent keeps in mind will appear here once it runs. Press space to run it."
    HELP = """## Working memory
What the agent has in mind now. ★ is its focus; + is new in this tick; the percentage is its confidence.
Below that the memories in mind: ★ the one in focus, ◆ pinned ones, which are never evicted. The bar is how
relevant it is now, then its age. p pins a memory or lets it go, E takes it out of mind, f brings it into
focus, enter opens it in the memory browser (M).
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pin", "Pin the memory in mind, or let it go", show=False, id="memory.pin"),
        Binding("E,delete", "change('evict')", "Take the memory out of mind", show=False, id="memory.evict"),
        Binding("f", "change('focus')", "Bring the memory into focus", show=False, id="memory.focus"),
    ]

    _model = WorkingMemoryModel()

    def row_chosen(self, key: str) -> None:
        """Open a memory."""
        if key.startswith(MEMORY):
            self.request("open", key.removeprefix(MEMORY))

    def action_pin(self) -> None:
        """Pin the memory under the cursor, or unpin it."""
        if (memory := self._under_cursor()) is not None:
            self.request("pin", memory.id, not memory.pinned)

    def action_change(self, how: str) -> None:
        """Take the memory under the cursor out of mind, or bring it into focus."""
        if (memory := self._under_cursor()) is not None:
            self.request(how, memory.id)

    def _under_cursor(self) -> RememberedLine | None:
        ident = self.cursor.removeprefix(MEMORY) if self.cursor.startswith(MEMORY) else None
        return next((memory for memory in self._model.memories if memory.id == ident), None)

    def make_rows(self) -> None:
        """Make the rows."""
        model = self._model
        kinds = ("belief", "result")
        beliefs, results = (
            [_memory_line_row(entry) for entry in model.entries if entry.kind == kind] for kind in kinds
        )
        present = [_memory_line_row(entry) for entry in model.entries if entry.kind not in kinds]
        mind = [_memory_row(memory) for memory in model.memories]
        if model.capacity and not mind and model.hint:
            mind = [Row("hint", (Piece(clean_line(model.hint), "dim"),), selectable=False, most=4)]
        rows = present
        if model.memories or model.entries:
            rows += _part("in mind", mind, titled=True)
        rows += _part("lately", results, titled=bool(mind))
        rows += _part("beliefs", beliefs, titled=bool(mind))
        self.set_caption_text(f"{len(model.memories)}/{model.capacity}" if model.capacity else "")
        self.set_rows(rows)


def _part(title: str, rows: list[Row], *, titled: bool) -> list[Row]:
    """Rows below their heading; none where there are none."""
    return [heading(f"heading:{title}", title), *rows] if rows and titled else rows


def _memory_line_row(entry: MemoryLine) -> Row:
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


def _memory_row(memory: RememberedLine) -> Row:
    text, kind = clean_line(memory.text), clean_line(memory.type).replace("_", " ")
    mark = Piece("★", "accent") if memory.focal else Piece("◆", "warning") if memory.pinned else Piece(" ")
    return Row(
        MEMORY + memory.id,
        (Piece(f"{kind}: ", "dim"), Piece(text, "strong" if memory.focal else "text")),
        tail=_tail(memory),
        mark=mark,
        indent=2,
        most=2,
        copy=text,
    )


def _tail(memory: RememberedLine) -> Pieces:
    """How relevant it is, and its age; a focal memory's pin stands here, as its mark is the star."""
    pin = (Piece("◆ ", "warning"),) if memory.pinned and memory.focal else ()
    style = "success" if memory.relevance >= 0.6 * MOST_RELEVANT else "text"
    return (
        *pin,
        *bar(memory.relevance / MOST_RELEVANT, BAR_CELLS, style=style),
        Piece(f" {clean_line(memory.age):>3}", "dim"),
    )
