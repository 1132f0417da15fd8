"""The beliefs of an agent with their sources, and its working memory: what it has in mind now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from engine.core.text import clean_line
from widgets.base.facts import ListModel, RowsPane
from widgets.base.rows import Row, heading
from widgets.base.text_layout import Piece, bar, cut_text, pad

PERCEPT, SELF = "percept", "self"
ORIGINS: dict[str, tuple[str, str]] = {PERCEPT: ("→", "accent"), SELF: ("●", "success")}
"""How beliefs from the senses and the agent's own are marked; all others are from agents."""
FROM_AGENTS = ("@", "warning")
SOURCE_CELLS = 11


class BeliefsPane(RowsPane):
    """The beliefs, newest first."""

    BORDER_TITLE = "3 Beliefs"
    MARKS = True
    BINDING_GROUP_TITLE = "Beliefs"
    EMPTY = "What the agent believes will appear here once it perceives. Press s to step it."

    def row_chosen(self, key: str) -> None:
        """Tell which belief was chosen."""
        self.request("belief_chosen", key)


@lru_cache(maxsize=16_384)
def belief_row(literal: str, sources: tuple[str, ...] = (SELF,), since: int = 0, fresh: bool = False) -> Row:
    """A belief, always the same row for the same values, of which there may be thousands.

    Args:
        literal: it, each one there once.
        sources: `percept`, `self` or the names of agents.
        since: the tick in which it came.
        fresh: whether it came or changed in this tick.
    """
    origin = next((source for source in ORIGINS if source in sources), "")
    glyph, style = ORIGINS.get(origin, FROM_AGENTS)
    text = clean_line(literal)
    return Row(
        literal,
        (Piece(glyph + " ", style), Piece(text, "strong" if fresh else "text")),
        tail=(Piece(f"{pad(_named(sources), SOURCE_CELLS)}{since:>4}", "dim"),),
        mark=Piece("+", "success") if fresh else Piece(" "),
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


class WorkingMemory(RowsPane):
    """What is worked on, the memories in mind, and the beliefs."""

    BORDER_TITLE = "3 Working memory"
    MARKS = True
    BINDING_GROUP_TITLE = "Working memory"
    EMPTY = "What the agent keeps in mind will appear here once it runs. Press space to run it."

    def row_chosen(self, key: str) -> None:
        """Open a memory."""
        self.action_ask("open")

    def action_ask(self, what: str) -> None:
        """Request something of the memory under the cursor."""
        if self.cursor.startswith(MEMORY):
            self.request(what, self.cursor.removeprefix(MEMORY))


def memory_rows(
    entries: Sequence[tuple[str, Row]], memories: Sequence[Row] = (), capacity: int = 0, hint: str = ""
) -> ListModel:
    """What is worked on, the memories in mind, and the beliefs.

    Args:
        entries: what is worked on, results and beliefs: its kind and the row of each.
        memories: in mind, the focal one first, then the most relevant.
        capacity: memories that may be in mind; 0 where nothing remembers.
        hint: what is said where no memory is in mind.
    """
    mind = list(memories)
    if capacity and not mind and hint:
        mind = [Row("hint", (Piece(clean_line(hint), "dim"),), selectable=False, most=4)]
    rows = [row for kind, row in entries if kind not in ("belief", "result")]
    if mind and (memories or entries):
        rows += [heading("heading:in mind", "in mind"), *mind]
    for kind, title in (("result", "lately"), ("belief", "beliefs")):
        part = [row for other, row in entries if other == kind]
        rows += [heading(f"heading:{title}", title), *part] if part and mind else part
    return ListModel(rows=rows, caption=f"{len(memories)}/{capacity}" if capacity else "")


def entry_row(
    id_: str,
    kind: str,
    text: str,
    *,
    focused: bool = False,
    confidence: float | None = None,
    fresh: bool = False,
) -> tuple[str, Row]:
    """Something the agent works on, a result, or a belief: its kind and its row.

    Args:
        id_: the row's key.
        kind: `goal`, `next`, `result`, `belief`, …
        text: in words.
        focused: whether the agent's attention is on it.
        confidence: between 0 and 1.
        fresh: whether it changed in this tick.
    """
    name, text = clean_line(kind), clean_line(text)
    mark = Piece("★", "accent") if focused else Piece("+", "success") if fresh else Piece(" ")
    return kind, Row(
        id_,
        (Piece(f"{name}: " if name else "", "dim"), Piece(text, "strong" if focused else "text")),
        tail=() if confidence is None else (Piece(f"{confidence:.0%}", "dim"),),
        mark=mark,
        indent=2,
        most=2,
        copy=text,
    )


def memory_row(
    id_: str, text: str, kind: str, relevance: float, age: str, *, focal: bool = False, pinned: bool = False
) -> Row:
    """A memory that is in mind; a focal memory's pin stands before the bar, as its mark is the star.

    Args:
        id_: the memory.
        text: its first words.
        kind: `fact`, `action_log`, `insight`, …
        relevance: from 0 to 10, now.
        age: how long ago it came, in a word: `now`, `3m`, `2h`.
        focal: whether it is in focus.
        pinned: whether it is never evicted.
    """
    text, kind = clean_line(text), clean_line(kind).replace("_", " ")
    style = "success" if relevance >= 0.6 * MOST_RELEVANT else "text"
    return Row(
        MEMORY + id_,
        (Piece(f"{clean_line(id_)} {kind}: ", "dim"), Piece(text, "strong" if focal else "text")),
        tail=(
            *((Piece("◆ ", "warning"),) if pinned and focal else ()),
            *bar(relevance / MOST_RELEVANT, BAR_CELLS, style=style),
            Piece(f" {clean_line(age):>3}", "dim"),
        ),
        mark=Piece("★", "accent") if focal else Piece("◆", "warning") if pinned else Piece(" "),
        indent=2,
        most=2,
        copy=text,
    )
