"""The phases of a pipeline, or of a build, each with the checks of its checkpoint below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.message import Message

from engine.domain.text import clean_line
from widgets.pieces import Piece
from widgets.rows import Row, RowPane

CHECK = " check "


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One criterion of a checkpoint."""

    mark: str
    """✓, ✗, or · where nothing could be said."""
    style: str
    what: str
    measured: str = ""
    """What was measured, as `17 < 20`."""


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """A phase."""

    id: str
    name: str
    mark: str
    style: str
    word: str
    """Where it stands."""
    checks: tuple[CheckLine, ...] = ()
    about: str = ""


class PhaseList(RowPane):
    """Phases one below the other."""

    BINDING_GROUP_TITLE = "Phases"
    MARKS = True
    DEFAULT_CSS = """
    PhaseList, PhaseList:focus { border: none; height: 1fr; min-height: 4; }
    """

    @dataclass
    class Moved(Message):
        """Another phase is under the cursor."""

    @dataclass
    class Opened(Message):
        """A phase is to be read."""

    @property
    def phase(self) -> str:
        """The phase under the cursor, or whose check is under it."""
        return self.cursor.partition(CHECK)[0]

    def show(self, phases: Sequence[PhaseLine]) -> None:
        """Show these; the cursor stays on its row."""
        self.set_rows([row for phase in phases for row in _rows(phase)])

    def row_highlighted(self, key: str) -> None:
        """Tell it."""
        self.post_message(self.Moved())

    def row_chosen(self, key: str) -> None:
        """Have it read."""
        self.post_message(self.Opened())


def _rows(phase: PhaseLine) -> list[Row]:
    name = clean_line(phase.name, limit=200)
    word = clean_line(phase.word, limit=80)
    about = clean_line(phase.about, limit=400)
    head = Row(
        phase.id,
        (Piece(name, "strong"), Piece(f"  {about}" if about else "", "dim")),
        tail=(Piece(word, phase.style),),
        mark=Piece(phase.mark, phase.style),
        most=2,
        copy=f"{name} {word}".strip(),
    )
    return [head, *(_check_row(phase.id, at, one) for at, one in enumerate(phase.checks))]


def _check_row(phase: str, at: int, one: CheckLine) -> Row:
    what, measured = clean_line(one.what, limit=400), clean_line(one.measured, limit=400)
    return Row(
        f"{phase}{CHECK}{at}",
        (
            Piece(f"  {one.mark} ", one.style),
            Piece(what),
            Piece(f"  {measured}" if measured else "", one.style),
        ),
        indent=4,
        most=3,
        copy=f"{one.mark} {what} {measured}".strip(),
    )
