"""A campaign: its candidates as a family, what the judge said of each, and the difference of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.domain.text import clean_line
from widgets.dialogs.box import BoxDialog
from widgets.dialogs.long_text import shown
from widgets.facts import Fact, FactsPane, fact_lines
from widgets.intervals import interval
from widgets.line_pane import Notice
from widgets.pieces import Piece, Pieces, broken
from widgets.rows import Row, RowPane

Wish = Literal["shadow", "apply", "decline", "roll_back", "resume", "cancel"]
WIDE = 118
"""Cells from which on the difference stands beside the family."""
BAR = 17
"""Cells of an interval."""


@dataclass(frozen=True, slots=True)
class CandidateLine:
    """One candidate."""

    id: str
    lead: str
    """The branches that it hangs on, drawn before it."""
    mark: str
    style: str
    ruling: str
    title: str
    added: int = 0
    removed: int = 0
    gain: tuple[float, float, float] | None = None
    """Low end, mean and high end of the interval; None where none was measured."""
    unit: str = ""
    """Of the gain; intervals of one unit are drawn on one scale."""
    figures: str = ""
    facts: tuple[Fact, ...] = ()
    """What the judge said, above the difference."""
    chosen: bool = False
    """Whether it waits for the operator or was applied."""
    diff: str = ""
    """Which difference it has; empty for none."""


@dataclass(frozen=True, slots=True)
class CampaignModel:
    """What the dialog shows."""

    id: str = ""
    title: str = ""
    mark: str = " "
    status: str = ""
    style: str = "text"
    head: tuple[str, ...] = ()
    """Lines above the family: how it was understood, what it took, where it is."""
    candidates: tuple[CandidateLine, ...] = ()
    log: tuple[Fact, ...] = ()
    """Findings and stages, shown where no candidate is."""
    may: frozenset[Wish] = frozenset()
    """What can be asked of it now."""
    place: str = ""
    """Which of the campaigns it is, such as `2 of 5`."""
    said: str = ""


class Family(RowPane):
    """The candidates, each below the one that it was made from."""

    BINDING_GROUP_TITLE = "Candidates"
    MARKS = True
    DEFAULT_CSS = """
    Family, Family:focus { border: none; height: 1fr; min-height: 3; }
    """

    def row_highlighted(self, key: str) -> None:
        """Show what it is."""
        if isinstance(self.screen, CampaignDialog):
            self.screen.show_candidate()

    def row_chosen(self, key: str) -> None:
        """Read its difference."""
        if isinstance(self.screen, CampaignDialog):
            self.screen.action_read()


class Difference(FactsPane):
    """What the judge said of a candidate, and its difference."""

    BINDING_GROUP_TITLE = "Difference"
    DEFAULT_CSS = """
    Difference, Difference:focus { border: none; height: 1fr; min-height: 3; }
    """

    _told: tuple[Fact, ...] = ()
    _diff = ""

    def show(self, told: tuple[Fact, ...], diff: str) -> None:
        """Show these; from the first line on where they are others."""
        if (told, diff) != (self._told, self._diff):
            self._told, self._diff = told, diff
            self.text_changed(from_start=True)

    def lines_for(self, width: int) -> tuple[Pieces, ...]:
        """The judge's words, a blank line, the difference line by line."""
        lines = [line for fact in self._told for line in fact_lines(fact, width)]
        if self._diff:
            lines.append((Piece(""),))
        for line in shown(self._diff).split("\n") if self._diff else ():
            lines += [(Piece(part, _style(line)),) for part in broken(line, width)]
        return tuple(lines)


def _style(line: str) -> str:
    """The style of a line of a difference."""
    if line.startswith(("+++", "---")):
        return "strong"
    return {"+": "success", "-": "error", "@": "accent"}.get(line[:1], "text")


class CampaignDialog(BoxDialog[None]):
    """Posts what is wanted of a campaign; whoever opens it answers by `show` and `show_difference`."""

    DEFAULT_CSS = """
    CampaignDialog > Vertical { width: 98%; height: 98%; max-width: 200; }
    CampaignDialog #head { height: auto; max-height: 7; text-wrap: nowrap; text-overflow: ellipsis; }
    CampaignDialog #said { height: auto; max-height: 3; color: $text-warning; }
    CampaignDialog #both { height: 1fr; layout: vertical; }
    CampaignDialog Difference { border-top: solid $border-blurred; }
    CampaignDialog Difference:focus { border-top: heavy $border; }
    CampaignDialog.-wide #both { layout: horizontal; }
    CampaignDialog.-wide Family { width: 52%; }
    CampaignDialog.-wide Difference { width: 1fr; border-top: none; border-left: solid $border-blurred; }
    CampaignDialog.-wide Difference:focus { border-left: heavy $border; }
    CampaignDialog.-reading Family { display: none; }
    CampaignDialog.-reading Difference { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "wish('shadow')", "Run as a shadow", id="campaign.shadow"),
        Binding("a", "wish('apply')", "Apply", id="campaign.apply"),
        Binding("d", "wish('decline')", "Decline", id="campaign.decline"),
        Binding("u", "wish('roll_back')", "Roll back", id="campaign.roll-back"),
        Binding("o", "wish('resume')", "Go on", id="campaign.resume"),
        Binding("c", "wish('cancel')", "Cancel", id="campaign.cancel"),
        Binding("left_square_bracket,n", "turn(-1)", "Older campaign", id="campaign.older"),
        Binding("right_square_bracket,N", "turn(1)", "Newer campaign", id="campaign.newer"),
        Binding("backspace,left", "back", "Back to the family", id="campaign.back"),
        Binding("q", "close", "Close", show=False, id="campaign.close"),
    ]

    @dataclass
    class Wanted(Message):
        """Something is wanted of the campaign."""

        campaign: str
        wish: Wish

    @dataclass
    class DifferenceWanted(Message):
        """The difference of a candidate is to be shown."""

        candidate: str

    @dataclass
    class Turned(Message):
        """Another campaign is to be shown: an older one for -1, a newer one for 1."""

        by: int

    def __init__(self, model: CampaignModel) -> None:
        super().__init__()
        self._model = model
        self._diffs: dict[str, str] = {}
        self._family = Family()
        self._difference = Difference()
        self._head = Static(id="head")
        self._said = Static(id="said")
        self._keys = Static(classes="-keys")

    @property
    def model(self) -> CampaignModel:
        """What is shown."""
        return self._model

    @property
    def family(self) -> Family:
        """The candidates."""
        return self._family

    def compose(self) -> ComposeResult:
        """How it stands, the family, the difference, and the keys."""
        with Vertical():
            yield self._head
            with Container(id="both"):
                yield self._family
                yield self._difference
            yield self._said
            yield self._keys

    def on_mount(self) -> None:
        """The family has the focus."""
        self.show(self._model)
        self._family.focus()

    def on_resize(self, event: events.Resize) -> None:
        """Put the difference beside the family where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")

    def show(self, model: CampaignModel) -> None:
        """Show this campaign; the cursor stays on its candidate, or goes to the chosen one."""
        other = model.id != self._model.id or not self._family.rows
        self._model = model
        box = self.query_one(Vertical)
        box.border_title = Content(clean_line(f"Campaign {model.id} {model.title}".rstrip(), limit=90))
        box.border_subtitle = Content(f"{clean_line(model.place)} · [ ] others · esc close".lstrip(" ·"))
        styled = {"success": "$text-success", "error": "$text-error", "warning": "$text-warning"}
        head = Content(f"{clean_line(model.mark)} {clean_line(model.status)}").stylize(
            f"bold {styled.get(model.style, '$foreground')}"
        )
        rest = [Content(clean_line(line, limit=300)) for line in model.head]
        self._head.update(Content("\n").join([head, *rest]))
        self._family.set_notice(None if model.candidates else Notice("No candidate yet."))
        self._family.set_rows(_rows(model))
        if other and (chosen := next((one.id for one in model.candidates if one.chosen), "")):
            self._family.move_cursor(chosen)
        self._said.update(Content(clean_line(model.said)))
        self._keys.update(_keys(model))
        self.show_candidate()

    def show_candidate(self) -> None:
        """Show what the judge said of the candidate under the cursor, and its difference."""
        one = self._line()
        if one is None:
            self._difference.show(self._model.log, "")
            return
        if one.diff and one.diff not in self._diffs:
            self.post_message(self.DifferenceWanted(one.id))
        self._difference.show(one.facts, self._diffs.get(one.diff, ""))

    def show_difference(self, diff: str, text: str) -> None:
        """Take in a difference that was asked for."""
        self._diffs[diff] = text
        self.show_candidate()

    def _line(self) -> CandidateLine | None:
        return next((one for one in self._model.candidates if one.id == self._family.cursor), None)

    def action_wish(self, wish: Wish) -> None:
        """Ask for something that can be asked for now."""
        if wish in self._model.may:
            self.post_message(self.Wanted(self._model.id, wish))
        elif self._model.id:
            said = f"{clean_line(self._model.id)} is {clean_line(self._model.status)}: {_WHY[wish]}"
            self._said.update(Content(said))

    def action_turn(self, by: int) -> None:
        """See another campaign."""
        self.action_back()
        self.post_message(self.Turned(by))

    def action_read(self) -> None:
        """Give the difference the whole room."""
        self.set_class(True, "-reading")
        self._difference.focus()

    def action_back(self) -> None:
        """Go back to the family."""
        self.set_class(False, "-reading")
        self._family.focus()

    def action_close(self) -> None:
        """Leave the difference; else close."""
        if self.has_class("-reading"):
            self.action_back()
        else:
            self.dismiss(None)


_WHY: dict[str, str] = {
    "shadow": "no candidate of it waits for you",
    "apply": "no candidate of it waits for you",
    "decline": "no candidate of it waits for you",
    "roll_back": "it is not applied",
    "resume": "there is nothing to go on with",
    "cancel": "nothing of it is under way",
}
_NAMES: dict[Wish, tuple[str, str]] = {
    "shadow": ("s", "shadow"),
    "apply": ("a", "apply"),
    "decline": ("d", "decline"),
    "roll_back": ("u", "roll back"),
    "resume": ("o", "go on"),
    "cancel": ("c", "cancel"),
}


def _keys(model: CampaignModel) -> Content:
    """The keys of what can be asked for now."""
    parts = [
        f"[@click=screen.wish('{wish}')][bold]{key}[/] {name}[/]"
        for wish, (key, name) in _NAMES.items()
        if wish in model.may
    ]
    parts += ["[@click=screen.read][bold]enter[/] difference[/]"] if model.candidates else []
    return Content.from_markup("   ".join([*parts, "[bold]tab[/] [bold]←[/] between them"]))


def _rows(model: CampaignModel) -> list[Row]:
    """The family; all intervals of a unit on one scale."""
    scales: dict[str, tuple[float, float]] = {}
    for one in model.candidates:
        if one.gain is not None:
            least, most = scales.get(one.unit, (0.0, 0.0))
            scales[one.unit] = min(least, one.gain[0]), max(most, one.gain[2])
    names = [f"{one.lead}{clean_line(one.id)}" for one in model.candidates]
    widest = max(map(cell_len, names), default=0)
    return [
        _row(one, name + " " * (widest - cell_len(name)), *scales.get(one.unit, (0.0, 0.0)))
        for one, name in zip(model.candidates, names, strict=True)
    ]


def _row(one: CandidateLine, name: str, least: float, most: float) -> Row:
    bar: Pieces = ()
    if one.gain is not None:
        low, mean, high = one.gain
        bar = interval(low, mean, high, least=least, most=most, cells=BAR)
    elif one.ruling:
        bar = (Piece(" " * BAR),)
    pieces = (
        Piece(f"{name} ", "strong" if one.chosen else "text"),
        *bar,
        Piece(f" {clean_line(one.ruling):<10} ", one.style),
        Piece(f"{clean_line(one.figures)} " if one.figures else "", "dim"),
        Piece(clean_line(one.title), "strong" if one.chosen else "text"),
    )
    tail = (Piece(f"+{one.added}", "success"), Piece(f" -{one.removed}", "error")) if one.diff else ()
    return Row(
        one.id,
        pieces,
        tail=tail,
        mark=Piece(one.mark, one.style),
        copy=" ".join(map(clean_line, (one.id, one.ruling, one.title, one.figures))),
    )
