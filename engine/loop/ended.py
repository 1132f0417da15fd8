"""Agents that are over for good: what is kept of each, so that thousands of them cost nothing to open.

A run that has handed back its work, and an agent that was deleted, never act again. All that a workspace
needs of them is what they took, and for whom; the rest is in the journal for who asks. What is kept is a
cache beside the stream: it counts only where it is of the stream's newest event, and else the stream is
folded again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from engine.domain.budgets import Spent
from engine.domain.state import AgentState
from engine.journal.kept_state import sealed, unsealed
from engine.journal.rows import Head
from engine.journal.store import JournalStore
from engine.steering.ledger import Ledger, taken_by

BESIDE = "@over"
"""What is kept stands beside the agent's stream under its name and this."""
FORMAT = 1


def is_over(state: AgentState) -> bool:
    """Whether an agent never does anything again."""
    return state.deleted or state.handed_back


async def keep(store: JournalStore, state: AgentState) -> None:
    """Keep what is needed of an agent that is over.

    Raises:
        JournalError: it cannot be kept.
    """
    spent = taken_by(state)
    amounts = [spent.calls, spent.tokens, spent.usd, spent.unpriced, spent.actions, spent.us]
    said = {"of": state.agent_id, "head": state.hash, "parent": state.config.parent, "spent": amounts}
    await store.save_snapshot(state.agent_id + BESIDE, state.version, FORMAT, sealed(json.dumps(said)))


async def bury(store: JournalStore, streams: Mapping[str, Head], ledger: Ledger) -> list[str]:
    """Count what agents took of which it is known that they are over.

    Args:
        store: the journal.
        streams: the agents' streams with their heads.
        ledger: counts.

    Returns:
        The streams of all other agents, in order.

    Raises:
        JournalError: the journal cannot be read.
    """
    over: set[str] = set()
    for one in await store.load_snapshots(list(streams), FORMAT, beside=BESIDE):
        if (one.version, one.hash) != tuple(streams[one.stream]):
            continue
        try:
            said = json.loads(unsealed(one.state))
            if (said["of"], said["head"]) == (one.stream, one.hash):
                ledger.bury(one.stream, said["parent"], Spent(*said["spent"]))
                over.add(one.stream)
        except (ValueError, KeyError, TypeError):
            continue
    return [name for name in streams if name not in over]
