"""Searching everything from the cockpit: one search at a time, ended when other words are typed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.worker import Worker

from app.cockpit.base import CockpitBase
from engine.journal.errors import JournalError

if TYPE_CHECKING:
    from engine.inquiry.finding import Batch, Hit
    from widgets.dialogs.search import SearchDialog, SearchLine, SearchModel

DRAWN_EVERY_S = 0.1
"""How often new hits are drawn."""


class SearchKeys(CockpitBase):
    """The search dialog."""

    _searcher: SearchDialog | None = None
    """The open dialog."""
    _searching: Worker[None] | None = None

    def action_search(self) -> None:
        """Search events, memories and files."""
        self._open_search("")

    def _open_search(self, words: str) -> None:
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        elif len(self.screen_stack) == 1:
            from widgets.dialogs.search import SearchDialog

            self._searcher = SearchDialog(words)
            self.push_screen(self._searcher, self._search_closed)

    def _search_closed(self, _none: None) -> None:
        self._searcher = None
        self._end_search()

    def _end_search(self) -> None:
        if self._searching is not None:
            self._searching.cancel()
            self._searching = None

    # The names of the handlers say which dialog's message they take, so that it need not be imported before.

    def on_search_dialog_search_requested(self, event: SearchDialog.SearchRequested) -> None:
        """Look for these words and no longer for the ones before."""
        self._end_search()
        if event.words and self._searcher is not None:
            self._searching = self.run_worker(
                self._search(self._searcher, event.words), name="search", exit_on_error=False
            )

    async def _search(self, dialog: SearchDialog, words: str) -> None:
        from app.searching import look_through
        from engine.inquiry.finding import FindingError, wanted
        from widgets.dialogs.search import SearchModel
        from widgets.line_pane import Notice

        engine = self._engine
        if engine is None:
            return
        try:
            what = wanted(words)
        except FindingError as error:
            dialog.show(SearchModel(words, notice=Notice(str(error), "error")))
            return
        hits: list[Hit] = []
        last: dict[str, Batch] = {}
        fresh = asyncio.Event()

        def take(batch: Batch) -> None:
            hits.extend(batch.hits)
            last[batch.source.value] = batch
            fresh.set()

        work = asyncio.create_task(look_through(engine, what, take))
        work.add_done_callback(lambda _work: fresh.set())
        try:
            while not work.done():
                await fresh.wait()
                fresh.clear()
                dialog.show(_model(words, hits, last, over=False))
                await asyncio.wait([work], timeout=DRAWN_EVERY_S)
            await work
            dialog.show(_model(words, hits, last, over=True))
        finally:
            work.cancel()

    def on_search_dialog_open_requested(self, event: SearchDialog.OpenRequested) -> None:
        """Read what was chosen."""
        if self._searcher is not None:
            self.run_worker(self._show_found(self._searcher, event.found), name="found", exit_on_error=False)

    async def _show_found(self, dialog: SearchDialog, found: SearchLine) -> None:
        from app.searching import whole
        from engine.inquiry.finding import Source
        from widgets.dialogs.long_text import Section

        if self._engine is None:
            return
        try:
            parts = await whole(self._engine, Source(found.source), found.ref)
        except JournalError as error:
            parts = [(str(error), "")]
        sections = tuple(Section(title, text) for title, text in parts)
        # A file is shown from the line that was found; what stands before it is above.
        at = len(sections) - 1 if found.source == Source.FILE else 0
        dialog.show_whole(found.key, sections, at=at)


def _model(words: str, hits: list[Hit], last: dict[str, Batch], *, over: bool) -> SearchModel:
    from app.searching import notes
    from engine.inquiry.finding import Source, newest_first
    from engine.journal.event import of_agent
    from widgets.dialogs.search import SearchLine, SearchModel
    from widgets.line_pane import Notice

    lines = tuple(
        SearchLine(
            f"{hit.source}:{hit.ref}", hit.source.value, hit.ref,
            hit.at[:19].replace("T", " "), hit.agent or hit.source.value, hit.kind, hit.text,
            goes=hit.source is Source.EVENT and of_agent(hit.ref.rpartition(":")[0]),
        )
        for hit in {f"{one.source}:{one.ref}": one for one in newest_first(hits)}.values()
    )  # fmt: skip
    looked = ", ".join(f"{batch.looked_at:,} {batch.source.several}" for _, batch in sorted(last.items()))
    standing = " · ".join(
        (f"{len(lines)} found", f"{'looked' if over else 'looking'} at {looked or 'nothing yet'}",
         *notes(list(last.values())))
    )  # fmt: skip
    notice = None
    if not lines:
        notice = Notice("Nothing was found.") if over else Notice("searching …", "loading")
    return SearchModel(words, lines, standing, notice)
