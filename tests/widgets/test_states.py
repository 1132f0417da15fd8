"""What every pane and dialog looks like while it loads, empty, failed, partly there, and done.

With PILOTHOUSE_STATES=DIR each of them is written there as a picture.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget

import widgets
from tests.widgets.cockpit_samples import ERRORS, GOALS, MIND, PLAN, SESSION
from tests.widgets.memory_samples import FOUND
from tests.widgets.reasoner_samples import BELIEFS, WORLD
from tests.widgets.test_crew_dialogs import fleet
from widgets.base.dialog import BoxDialog, ListDialog
from widgets.base.facts import ListModel
from widgets.base.line_pane import NOTICE_MARKS, LinePane, Notice
from widgets.base.rows import Row
from widgets.base.text_layout import Piece
from widgets.dialogs.campaign import CampaignDialog, CampaignModel
from widgets.dialogs.fleet import FleetDialog, FleetModel, ShardsDialog
from widgets.dialogs.handoffs import HandoffLine, HandoffsDialog, HandoffsModel, SelectionDialog
from widgets.dialogs.lists import (
    BacklogDialog,
    BreakpointsDialog,
    BudgetsDialog,
    InboxDialog,
    JobsDialog,
    MetaDialog,
)
from widgets.dialogs.memory_browser import BrowserModel, MemoryBrowser
from widgets.dialogs.review import SearchDialog, SearchModel, WhyDialog, WhyModel
from widgets.dialogs.session import BuilderDialog, SessionDialog
from widgets.dialogs.session import SessionModel as HandoffModel
from widgets.panes.beliefs import BeliefsPane, WorkingMemory
from widgets.panes.errors import ErrorPanel
from widgets.panes.goals import GoalStack
from widgets.panes.mind_stream import MindStream
from widgets.panes.plan import PlanModel, PlanPane
from widgets.panes.session import SandboxPane, SessionModel
from widgets.panes.world import WorldModel, WorldPane

Show = Callable[[Any, bool, Notice | None], None]
"""Shows a pane or dialog something, or nothing, and a notice."""
ROWS = tuple(Row(f"row:{at}", (Piece(f"row {at}"),)) for at in range(3))
READING = Notice("reading what there is …", "loading")
FAILED = Notice("the journal cannot be read", "error")
PARTLY = Notice("2 of 5 could not be read", "partly")


def rows(some: Any = ROWS) -> Show:
    """For what shows a `ListModel`."""
    return lambda shown, filled, notice: shown.show(ListModel(rows=some if filled else (), notice=notice))


def model(kind: Callable[..., Any], **some: Any) -> Show:
    """For what shows a model of its own with these fields."""
    return lambda shown, filled, notice: shown.show(kind(**(some if filled else {}), notice=notice))


def session(shown: SandboxPane, filled: bool, notice: Notice | None) -> None:
    shown.clear()
    shown.show(SessionModel(notice=notice))
    shown.append(SESSION if filled else ())


HANDOFF = (HandoffLine("h-1", "D h-1 larry", "", "✓", "success", "done", "4s"),)
PANES: dict[type[Widget], Show] = {
    GoalStack: rows(GOALS),
    PlanPane: model(PlanModel, steps=PLAN.steps),
    BeliefsPane: rows(BELIEFS),
    WorkingMemory: rows(BELIEFS),
    ErrorPanel: rows(ERRORS.rows),
    SandboxPane: session,
    MindStream: rows(MIND.rows),
    WorldPane: lambda shown, filled, notice: shown.show(
        WorldModel(lines=WORLD.lines if filled else (), notice=notice)
    ),
}
WHY = {"what": "s2", "way": "backward", "title": "Why s2"}
DIALOGS: dict[type[BoxDialog[Any]], tuple[Callable[[], Any], Show]] = {
    **{
        kind: (lambda kind=kind: kind(ListModel("Title")), rows())  # type: ignore[misc]
        for kind in (BacklogDialog, BreakpointsDialog, BudgetsDialog, InboxDialog, JobsDialog, MetaDialog)
    },
    SelectionDialog: (lambda: SelectionDialog(ListModel("Title")), rows()),
    CampaignDialog: (lambda: CampaignDialog(CampaignModel()), model(CampaignModel, candidates=ROWS)),
    FleetDialog: (lambda: FleetDialog(FleetModel()), model(FleetModel, rows=fleet(3))),
    ShardsDialog: (lambda: ShardsDialog(FleetModel()), model(FleetModel, rows=fleet(3))),
    HandoffsDialog: (lambda: HandoffsDialog(HandoffsModel()), model(HandoffsModel, lines=HANDOFF)),
    WhyDialog: (
        lambda: WhyDialog(WhyModel(**WHY)),  # type: ignore[arg-type]
        lambda shown, filled, notice: shown.show(
            WhyModel(**WHY, rows=ROWS if filled else (), notice=notice)  # type: ignore[arg-type]
        ),
    ),
    SessionDialog: (lambda: SessionDialog(HandoffModel()), model(HandoffModel, rows=ROWS)),
    BuilderDialog: (lambda: BuilderDialog(HandoffModel()), model(HandoffModel, rows=ROWS)),
    SearchDialog: (lambda: SearchDialog(""), model(SearchModel, found=ROWS)),
    MemoryBrowser: (lambda: MemoryBrowser(BrowserModel()), model(BrowserModel, found=FOUND)),
}
ASKS = {
    "ApprovalDialog",
    "CampaignDialog",
    "ComparisonDialog",
    "ConfirmDialog",
    "ContextDialog",
    "GeneratedPlansDialog",
    "HandBackDialog",
    "HandoverDialog",
    "HelpDialog",
    "InterventionDialog",
    "LeaveDialog",
    "NoJailDialog",
    "PermissionDialog",
    "PictureDialog",
    "PlanApprovalDialog",
    "PreviewDialog",
    "ReadableEventsDialog",
    "RewindDialog",
    "StepEditor",
    "StopDialog",
    "TextDialog",
    "ThemesDialog",
    "TrustDialog",
    "UnsoundJournalDialog",
    "WriteDialog",
}
"""Dialogs that are opened with all that they show, so that nothing of them can load, lack or fail."""
PARTS = {
    "ChangeList",
    "CompletionList",
    "FactsPane",
    "FleetGrid",
    "LinePane",
    "LongText",
    "RowsPane",
    "StepDetail",
    "StepList",
    "StopReceiptPane",
    "BoxDialog",
    "ListDialog",
    "RowsDialog",
}
"""Panes of others, which show what those were given; and bases."""
STATES: tuple[tuple[str, bool, Notice | None], ...] = (
    ("loading", False, READING),
    ("empty", False, None),
    ("failed", False, FAILED),
    ("partly", True, PARTLY),
    ("done", True, None),
)


def below(kind: type[Any]) -> Iterator[type[Any]]:
    """A class with all that are made from it here."""
    if kind.__module__.startswith("widgets."):
        yield kind
    for each in kind.__subclasses__():
        yield from below(each)


def test_every_pane_and_dialog_has_a_row_in_the_table_of_states() -> None:
    for module in pkgutil.walk_packages(widgets.__path__, "widgets."):
        import_module(module.name)
    there = {kind.__name__ for base in (LinePane, BoxDialog) for kind in below(base)}
    table = {kind.__name__ for kind in (*PANES, *DIALOGS)} - {PlanPane.__name__}
    assert there == table | ASKS | PARTS


class StatesApp(App[None]):
    """Shows one pane."""

    def __init__(self, pane: Widget | None) -> None:
        super().__init__()
        self.pane = pane

    def compose(self) -> Iterator[Widget]:
        if self.pane is not None:
            yield self.pane


def pane_of(shown: Widget | Screen[Any]) -> LinePane:
    """The pane or list that shows what there is."""
    if isinstance(shown, LinePane):
        return shown
    if isinstance(shown, ListDialog):
        return shown.list
    return shown.grid if isinstance(shown, FleetDialog) else shown.query(LinePane).first()


def look(pane: LinePane) -> tuple[str, Any]:
    """The mark and colour of what is said instead of lines or on the last line, where that is something."""
    height = pane.content_size.height
    strips = [pane.render_line(y) for y in range(height)]
    filled = pane.line_total()[0] != pane.line_total()[1]
    said = strips[-1] if filled else next((strip for strip in strips if strip.text.strip()), ())
    for segment in said:
        if segment.text[:2] in ("… ", "✗ ", "◐ "):
            return segment.text[:2], segment.style and segment.style.color
    return ("done" if filled else ""), None


async def check(app: StatesApp, pilot: Any, shown: Any, show: Show) -> None:
    """Show it in each state, and look at it."""
    seen: list[tuple[str, Any]] = []
    for state, filled, notice in STATES:
        if state != "loading" or isinstance(shown, BoxDialog):
            show(shown, filled, notice)
        await pilot.pause()
        pane = pane_of(shown)
        seen.append(look(pane))
        wanted = {"empty": "", "done": "done"}.get(state, NOTICE_MARKS[(notice or READING).kind][0])
        assert seen[-1][0] == wanted, state
        if directory := os.environ.get("PILOTHOUSE_STATES"):
            os.makedirs(directory, exist_ok=True)
            app.save_screenshot(f"{type(shown).__name__}-{state}.svg", directory)
    assert len(set(map(str, seen))) == len(STATES), "two states look alike"


@pytest.mark.parametrize("kind", PANES, ids=lambda kind: kind.__name__)
async def test_the_states_of_a_pane_look_different(kind: type[Widget]) -> None:
    app = StatesApp(kind())
    async with app.run_test(size=(100, 30)) as pilot:
        await check(app, pilot, app.pane, PANES[kind])


@pytest.mark.parametrize("kind", DIALOGS, ids=lambda kind: kind.__name__)
async def test_the_states_of_a_dialog_look_different(kind: type[BoxDialog[Any]]) -> None:
    make, show = DIALOGS[kind]
    app = StatesApp(None)
    async with app.run_test(size=(100, 30)) as pilot:
        dialog = make()
        await app.push_screen(dialog)
        await check(app, pilot, dialog, show)
