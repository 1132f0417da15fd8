"""An agent's spec as what the selection graph holds of it.

Source: ontology spec §2.6. Whoever makes the spec sees to its triggers; here nothing is made up.
"""

from __future__ import annotations

from engine.agents.spec import AgentSpec
from engine.selection.graph import FrameworkGraph
from engine.selection.values import ANYONE, Edge, Node


def node_of(spec: AgentSpec, updated_at: str = "") -> Node:
    """The node of a spec; one that selection may not offer is disabled.

    Args:
        spec: what was registered.
        updated_at: when, ISO 8601.

    Raises:
        GraphInputError: the graph does not take it.
    """
    callers = spec.handoff.routing.can_be_called_by
    return Node(
        spec.id,
        spec.name,
        spec.type.value,
        spec.triggers.keywords,
        tuple(fit.type for fit in spec.triggers.problem_types),
        spec.version,
        updated_at,
        spec.description,
        spec.selectable,
        (ANYONE,) if callers == ANYONE else tuple(callers),
    )


def edges_of(spec: AgentSpec) -> tuple[Edge, ...]:
    """The edges that a spec declares: its chains, `follows` reversed, with itself as their source."""
    chains = [(spec.id, one.id, one.weight) for one in spec.chaining.precedes]
    chains += [(one.id, spec.id, one.weight) for one in spec.chaining.follows]
    found = {(src, dst): Edge(src, "CHAINS_TO", dst, weight, spec.id) for src, dst, weight in chains}
    good = {
        fit.type: Edge(spec.id, "GOOD_FOR", fit.type, fit.confidence) for fit in spec.triggers.problem_types
    }
    return (*found.values(), *good.values())


async def register(graph: FrameworkGraph, spec: AgentSpec, updated_at: str = "") -> None:
    """Put an agent into the graph, or change it: edges that its former version declared go.

    What others declare about it, and the record of its uses, stay. Registering again changes nothing.

    Args:
        graph: where to; for several writes at once, what `transaction` or `trial` gave.
        spec: what was registered.
        updated_at: when, ISO 8601.

    Raises:
        GraphInputError: the graph does not take it; it may be written in part outside of a transaction.
        GraphUnavailable: the graph cannot be written.
    """
    await graph.upsert(node_of(spec, updated_at))
    for edge in await graph.edges():
        if edge.source == spec.id or (edge.src, edge.rel) == (spec.id, "GOOD_FOR"):
            await graph.unlink(edge.src, edge.rel, edge.dst, source=edge.source or None)
    for edge in edges_of(spec):
        source = {"source": edge.source} if edge.source else {}
        await graph.link(edge.src, edge.rel, edge.dst, **edge.props, **source)
