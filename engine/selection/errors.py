"""What can go wrong with the selection graph, each with a message that says what was wrong and what to do."""

# Named after what happened, as the journal's are.
# ruff: noqa: N818

from __future__ import annotations


class GraphFault(Exception):
    """Something about the selection graph that the caller should know."""


class GraphInputError(GraphFault, ValueError):
    """A node, an edge or a signal holds something that the graph does not take; nothing was written."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        """The field that was wrong."""


class GraphNotFound(GraphFault):
    """There is no agent with this id in the graph."""


class GraphUnavailable(GraphFault):
    """The graph could not be read or written just now."""
