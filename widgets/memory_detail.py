"""One memory in full: its words, what it is linked to, and what became of it over time."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from engine.domain.text import clean, clean_line
from widgets.pieces import Piece, Pieces, broken, labelled, wrap
from widgets.rows import Row, RowPane

LINK = "link:"


@dataclass(frozen=True, slots=True)
class LinkLine:
    """A link of the memory, in one of the two directions."""

    memory_id: str
    """The memory at its other end."""
    outward: bool
    """True where the link goes from this memory to that one."""
    type: str
    strength: float
    """From 0 to 1."""
    text: str
    """The other memory's first words."""


@dataclass(frozen=True, slots=True)
class VersionLine:
    """What was written of the memory at one event."""

    at: str
    """When, as it is shown."""
    by: str
    what: str
    """What changed, in words."""


@dataclass(frozen=True, slots=True)
class MemoryDetail:
    """A memory as the detail shows it."""

    id: str
    content: str
    level: str
    type: str
    importance: float
    """From 0 to 10."""
    confidence: float
    """From 0 to 1."""
    description: str = ""
    reasoning: str = ""
    source: str = ""
    tags: tuple[str, ...] = ()
    created: str = ""
    used: str = ""
    """How often and when last, in words."""
    expires: str = ""
    work: str = ""
    in_mind: bool = False
    focal: bool = False
    pinned: bool = False
    links: tuple[LinkLine, ...] = ()
    history: tuple[VersionLine, ...] = ()
    """Newest first."""


class DetailPane(RowPane):
    """The memory's text and facts line by line, then its links, which can be followed, and its history."""

    BINDING_GROUP_TITLE = "Memory"
    EMPTY = "The memory under the cursor will be shown here in full. Press tab to go to it."
    STARTS_ON_FIRST = False
    DEFAULT_CSS = """
    DetailPane, DetailPane:focus { border: none; border-top: solid $border-blurred; min-height: 2; }
    DetailPane:focus { border-top: solid $border; }
    """

    @dataclass
    class LinkChosen(Message):
        """The operator follows a link."""

        memory_id: str

    def __init__(self) -> None:
        super().__init__()
        self._detail: MemoryDetail | None = None

    @property
    def detail(self) -> MemoryDetail | None:
        """The memory that is shown."""
        return self._detail

    def show(self, detail: MemoryDetail | None) -> None:
        """Show this memory from its beginning, or what became of the one that is shown."""
        if detail == self._detail:
            return
        before, self._detail = self._detail, detail
        self._arrange()
        if detail is None or before is None or before.id != detail.id:
            self.clear_cursor()
            self.scroll_lines_to(0)

    def on_resize(self) -> None:
        """Break the text anew."""
        super().on_resize()
        self._arrange()

    def row_clicked(self, key: str, chain: int) -> None:
        """One click on a link follows it."""
        self.row_chosen(key)

    def row_chosen(self, key: str) -> None:
        """Tell which link was chosen."""
        if key.startswith(LINK):
            self.post_message(self.LinkChosen(key.removeprefix(LINK).partition(" ")[0]))

    def _arrange(self) -> None:
        detail, width = self._detail, max(8, self.text_width)
        self.set_rows(
            [*_facts(detail, width), *_links(detail), *_history(detail)] if detail is not None else []
        )


def _facts(one: MemoryDetail, width: int) -> list[Row]:
    """Everything but links and history, a row a line, so that the pane scrolls by lines."""
    state = " · ".join(
        word
        for word, holds in (("★ in focus", one.focal), ("◆ pinned", one.pinned), ("in mind", one.in_mind))
        if holds
    )
    kind = f"{one.level} {one.type}".replace("_", " ")
    head = f"{one.id} · {kind} · importance {one.importance:.1f} · confidence {one.confidence:.0%}"
    told = clean_line(f"{head} · {state}" if state else head)
    lines: list[Pieces] = [*wrap((Piece(told, "heading"),), width, most=3)]
    for part in clean(one.content).split("\n"):
        lines += [(Piece(line),) for line in broken(part, width)]
    for label, text in (
        ("about", one.description),
        ("why", one.reasoning),
        ("source", one.source),
        ("tags", ", ".join(one.tags)),
        ("made", one.created),
        ("used", one.used),
        ("until", one.expires),
        ("work", one.work),
    ):
        lines += labelled(label, clean_line(text), width, most=20)
    return [Row(f"line:{at}", line) for at, line in enumerate(lines)]


def _links(one: MemoryDetail) -> list[Row]:
    if not one.links:
        return [Row("links", (Piece("no links", "dim"),), selectable=False)]
    rows = [Row("links", (Piece(f"links ({len(one.links)}): enter follows", "heading"),), selectable=False)]
    for at, link in enumerate(one.links):
        arrow = "→" if link.outward else "←"
        rows.append(
            Row(
                f"{LINK}{link.memory_id} {at}",
                (
                    Piece(f"{arrow} {clean_line(link.type).replace('_', ' ')} ", "accent"),
                    Piece(clean_line(link.text)),
                ),
                tail=(Piece(f"{link.strength:.2f}", "dim"),),
                indent=4,
                most=2,
                copy=clean_line(link.text),
            )
        )
    return rows


def _history(one: MemoryDetail) -> list[Row]:
    if not one.history:
        return []
    rows = [Row("history", (Piece("history", "heading"),), selectable=False)]
    for at, version in enumerate(one.history):
        rows.append(
            Row(
                f"version:{at}",
                (
                    Piece(f"{clean_line(version.at)} ", "dim"),
                    Piece(f"{clean_line(version.by)} ", "accent"),
                    Piece(clean_line(version.what)),
                ),
                indent=4,
                most=4,
            )
        )
    return rows
