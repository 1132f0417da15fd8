"""Keeping the journal's index up with it, in the background of a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.ports import Clock
from engine.core.store import JOURNAL
from engine.core.store.port import JournalStore

if TYPE_CHECKING:
    from engine.inquiry.index_writer import JournalIndex


INDEX_FROM = 1_024
"""Events of a journal from which on it has an index; fewer are read as quickly."""


async def keep_index(workspace: Path, store: JournalStore, clock: Clock, every_s: float) -> None:
    """Bring the index of the journal forward now and then; the first time behind the first screen.

    A journal that is in no file has none: its server has indexes of its own.
    """
    if os.environ.get(JOURNAL):
        return
    index: JournalIndex | None = None
    try:
        while True:
            await clock.sleep(every_s)
            if index is None and store.last_seq >= INDEX_FROM:
                from engine.inquiry.index_writer import JournalIndex

                index = JournalIndex(workspace)
            if index is not None:
                await index.update(store.last_seq)
    finally:
        if index is not None:
            await index.close()
