"""A campaign: its candidates as a tree, the judge's rulings, and the difference of one candidate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from textual import on
from textual.content import Content
from textual.widgets import Static

from engine.core.text import clean_line
from engine.value import dataclass, field
from widgets.base.dialog import DialogKey, ListDialog
from widgets.base.facts import Fact, FactsPane, fact_lines
from widgets.base.line_pane import Notice, RowChosen, RowHighlighted
from widgets.base.rows import Row
from widgets.base.text_layout import Piece, Pieces, break_line, escape_unprintable

CampaignRequest = Literal["shadow", "apply", "decline", "roll_back", "resume", "cancel"]


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
    candidates: Sequence[Row] = ()
    facts: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)
    """What the judge said of each candidate."""
    diffs: Mapping[str, str] = field(default_factory=dict)
    """Which difference each has; empty for none."""
    chosen: str = ""
    """The candidate that waits for the operator or was applied."""
    log: tuple[Fact, ...] = ()
    """Findings and stages, shown where no candidate is."""
    may: frozenset[CampaignRequest] = frozenset()
    """What can be asked of it now."""
    place: str = ""
    """Which of the campaigns it is, such as `2 of 5`."""
    said: str = ""
    notice: Notice | None = None


def _candidate_lines(facts: tuple[Fact, ...], diff: str, width: int) -> Iterator[Pieces]:
    """The judge's words, a blank line, the difference line by line."""
    yield from fact_lines(facts, width)
    if diff:
        yield (Piece(""),)
        for line in escape_unprintable(diff).split("\n"):
            for part in break_line(line, width):
                yield (Piece(part, _style(line)),)


def _style(line: str) -> str:
    """The style of a line of a difference."""
    if line.startswith(("+++", "---")):
        return "strong"
    return {"+": "success", "-": "error", "@": "accent"}.get(line[:1], "text")


class CampaignDialog(ListDialog[CampaignModel]):
    """A campaign: its candidates, and the judge's words and the difference of one."""

    WIDE, LIST_TITLE, EMPTY, CLASSES = 118, "Candidates", "No candidate yet.", "-full"

    def __init__(self, model: CampaignModel) -> None:
        super().__init__(model)
        self._diffs: dict[str, str] = {}
        self._difference = FactsPane(title="Difference", id="difference")
        self._head = Static(id="head")
        self.parts = (self._head, self.halves(self.list, self._difference), self.said, self.keys)

    def rows(self) -> Sequence[Row]:
        """The candidates, each below the one that it was made from."""
        return self.model.candidates

    def show(self, model: CampaignModel) -> None:
        """Show this campaign; the cursor stays on its candidate, or goes to the chosen one."""
        other = model.id != self.model.id or not self.list.rows
        super().show(model)
        title = clean_line(f"Campaign {model.id} {model.title}".rstrip(), limit=90)
        self.set_title(title, f"{model.place} · [ ] others · esc close")
        styled = {"success": "$text-success", "error": "$text-error", "warning": "$text-warning"}
        head = Content(f"{clean_line(model.mark)} {clean_line(model.status)}").stylize(
            f"bold {styled.get(model.style, '$foreground')}"
        )
        rest = [Content(clean_line(line, limit=300)) for line in model.head]
        self._head.update(Content("\n").join([head, *rest]))
        if other:
            self.list.move_cursor(model.chosen)
        reading = DialogKey("", "read", "difference", shown="enter")
        between = DialogKey("", "", "between them", shown="tab ←")
        self.show_possible(model.may, *([reading] if model.candidates else []), between)
        self.show_candidate()

    @on(RowHighlighted, "#list")
    def show_candidate(self) -> None:
        """Show the judge's ruling on the candidate under the cursor, and its difference."""
        candidate = self.list.cursor
        diff = self.model.diffs.get(candidate, "")
        if diff and diff not in self._diffs:
            self.request("difference", candidate)
        facts, diff = self.model.facts.get(candidate, self.model.log), self._diffs.get(diff, "")
        self._difference.show_text((facts, diff), partial(_candidate_lines, facts, diff))

    def show_difference(self, diff: str, text: str) -> None:
        """Take in a difference that was asked for."""
        self._diffs[diff] = text
        self.show_candidate()

    def action_request(self, request: CampaignRequest) -> None:
        """Ask for something that can be asked for now."""
        if request in self.model.may:
            self.list.move_cursor(self.model.chosen)  # the candidate that the key is about
            self.request("wanted", self.model.id, request)
        elif self.model.id:
            self.say(f"{self.model.id} is {self.model.status}: {self.key_of(request).why_not}")

    def action_turn(self, by: int) -> None:
        """See another campaign."""
        self.action_back()
        self.request("turned", by)

    @on(RowChosen, "#list")
    def action_read(self) -> None:
        """Show only the difference."""
        self.set_class(True, "-reading")
        self._difference.focus()

    def action_back(self) -> None:
        """Go back to the candidates."""
        self.set_class(False, "-reading")
        self.list.focus()

    def action_close(self) -> None:
        """Leave the difference; else close."""
        if self.has_class("-reading"):
            self.action_back()
        else:
            self.dismiss(None)
