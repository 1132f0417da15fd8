"""What every selection graph does, whichever engine holds it.

Source: ontology spec §3, data-stack spec §3. The graph is a projection: what counts stands in the journal,
and `position` says up to where a graph has taken it in.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from typing import Any, Protocol

from engine.domain.text import clean_line
from engine.selection.errors import GraphNotFound
from engine.selection.normalising import triggers_in
from engine.selection.selecting import Selection, Standing
from engine.selection.values import Edge, Node, Policy, Position, Rel, Signal


class FrameworkGraph(Protocol):
    """Agents, what they are good for, what follows what, and how they did.

    Every method raises `GraphUnavailable` where the graph cannot be read or written just now, and
    `GraphInputError` for what it does not take; then nothing was written.
    """

    async def upsert(self, node: Node) -> None:
        """Put an agent into the graph, or change it; its edges stay."""

    async def link(self, src: str, rel: Rel, dst: str, **props: Any) -> None:
        """Put an edge into the graph, or change it; its ends need not be registered yet.

        A chain with a `source` is merged by both ends and the source. One without is the only one between its
        ends afterwards.

        Args:
            src: an agent's id.
            rel: CHAINS_TO, GOOD_FOR or USED_BY.
            dst: an agent's id, a problem type or a session's id.
            props: `weight` and `source`, `confidence`, or `success`.
        """

    async def unlink(self, src: str, rel: Rel, dst: str, *, source: str | None = None) -> None:
        """Take edges between two ends away: all of them, or the one of a source."""

    async def remove(self, id: str) -> None:  # noqa: A002
        """Take an agent away with its chains and what it is good for; the record of its uses stays."""

    async def record_use(self, id: str, session: str, success: bool) -> None:  # noqa: A002
        """Note how a use ended; once for each agent and session, the last word counts."""

    async def select(self, signal: Signal, *, policy: Policy = "corrected") -> Selection:
        """Select the agents that fit a signal."""

    async def explain(self, id: str, signal: Signal, *, policy: Policy = "corrected") -> Standing:  # noqa: A002
        """How one agent does for a signal: its points, its place, or why it is not selected.

        Raises:
            GraphNotFound: there is no such agent.
        """

    async def neighbours(self, id: str, rel: Rel = "CHAINS_TO", depth: int = 1) -> tuple[Edge, ...]:  # noqa: A002
        """The edges that lead away from an agent within so many hops, nearest first, then by their ends."""

    async def nodes(self) -> tuple[Node, ...]:
        """All agents, by id."""

    async def edges(self, rel: Rel | None = None) -> tuple[Edge, ...]:
        """All edges, or those of one relation, by their ends."""

    async def vocabulary(self) -> frozenset[str]:
        """All triggers of all agents."""

    async def position(self) -> Position:
        """The last event that was taken in."""

    async def note_position(self, position: Position) -> None:
        """Note the last event that was taken in; within a transaction, with what came of it."""

    def trial(self) -> AbstractAsyncContextManager[FrameworkGraph]:
        """The graph as it would be: writes to it are seen through it alone and taken back at the end."""

    def transaction(self) -> AbstractAsyncContextManager[FrameworkGraph]:
        """The graph with writes that count together at the end, or not at all if something is raised."""

    async def close(self) -> None:
        """Give up threads and connections; may be called again."""


async def signal_in(text: str, graph: FrameworkGraph, **more: Any) -> Signal:
    """The signal that a text gives: the triggers and types of problems that it holds as whole words.

    Args:
        text: what a person or an agent said.
        graph: whose agents' triggers are looked for.
        more: the other fields of the signal.
    """
    if "problem_types" not in more:
        kinds = {kind for node in await graph.nodes() for kind in node.problem_types}
        more["problem_types"] = triggers_in(text, kinds)
    return Signal(triggers=triggers_in(text, await graph.vocabulary()), **more)


def not_found(id: str, known: list[str]) -> GraphNotFound:  # noqa: A002
    """The error for an id that no agent has, with the nearest ones."""
    nearest = get_close_matches(id, known, n=3, cutoff=0.3)
    hint = f" The nearest: {', '.join(nearest)}." if nearest else ""
    return GraphNotFound(f"There is no agent {clean_line(id, limit=80)} in the selection graph.{hint}")
