"""The selection graph: which agent fits what is wanted, what follows what, and how agents did.

What may enter: agents as nodes, their edges, how uses ended, and signals. What leaves: agents in order, each
with its points and why. Nothing here runs an agent. Stores are imported when they are first asked for.
Source: ontology spec §3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.selection.cypher import schema_cypher, schema_parameters
    from engine.selection.errors import GraphFault, GraphInputError, GraphNotFound, GraphUnavailable
    from engine.selection.graph import FrameworkGraph, signal_in
    from engine.selection.memory_graph import MemoryGraph
    from engine.selection.neo4j_graph import Neo4jGraph
    from engine.selection.normalising import normalise, normalised, triggers_in
    from engine.selection.registering import edges_of, node_of, register
    from engine.selection.selecting import CLARIFIER, Candidate, Facts, Selection, Standing, choose, facts_of
    from engine.selection.sqlite_graph import DATABASE, SqliteGraph
    from engine.selection.values import Edge, Node, Policy, Position, Rel, Signal, edge_of
else:
    __getattr__ = late(
        __name__,
        {
            "cypher": ("schema_cypher", "schema_parameters"),
            "errors": ("GraphFault", "GraphInputError", "GraphNotFound", "GraphUnavailable"),
            "graph": ("FrameworkGraph", "signal_in"),
            "memory_graph": ("MemoryGraph",),
            "neo4j_graph": ("Neo4jGraph",),
            "normalising": ("normalise", "normalised", "triggers_in"),
            "registering": ("edges_of", "node_of", "register"),
            "selecting": (
                "CLARIFIER",
                "Candidate",
                "Facts",
                "Selection",
                "Standing",
                "choose",
                "facts_of",
            ),
            "sqlite_graph": ("DATABASE", "SqliteGraph"),
            "values": ("Edge", "Node", "Policy", "Position", "Rel", "Signal", "edge_of"),
        },
    )

__all__ = [
    "CLARIFIER",
    "DATABASE",
    "Candidate",
    "Edge",
    "Facts",
    "FrameworkGraph",
    "GraphFault",
    "GraphInputError",
    "GraphNotFound",
    "GraphUnavailable",
    "MemoryGraph",
    "Neo4jGraph",
    "Node",
    "Policy",
    "Position",
    "Rel",
    "Selection",
    "Signal",
    "SqliteGraph",
    "Standing",
    "choose",
    "edge_of",
    "edges_of",
    "facts_of",
    "node_of",
    "normalise",
    "normalised",
    "register",
    "schema_cypher",
    "schema_parameters",
    "signal_in",
    "triggers_in",
]
