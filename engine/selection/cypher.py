"""The selection graph in Cypher, as Neo4j takes it: texts with parameters only.

Aggregates stand alone in their WITH, so that nothing is grouped implicitly (Neo4j's error 42I18; ontology
spec §3.1 defect 1). A node without a name only stands at the end of an edge: nobody has registered it yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.selection.values import Edge, Node, Rel

CONSTRAINTS = (
    "CREATE CONSTRAINT framework_id IF NOT EXISTS FOR (f:Framework) REQUIRE f.id IS UNIQUE",
    "CREATE CONSTRAINT problem_type_name IF NOT EXISTS FOR (t:ProblemType) REQUIRE t.name IS UNIQUE",
    "CREATE CONSTRAINT session_id IF NOT EXISTS FOR (s:Session) REQUIRE s.id IS UNIQUE",
)

UPSERT = """\
MERGE (f:Framework {id: $node.id})
SET f.name = $node.name, f.type = $node.type, f.triggers = $node.triggers,
    f.problem_types = $node.problem_types, f.version = $node.version, f.updated_at = $node.updated_at,
    f.description = $node.description, f.enabled = $node.enabled, f.callers = $node.callers"""

_CHAIN_ENDS = "MATCH (:Framework {id: $src})-[r:CHAINS_TO]->(:Framework {id: $dst})"
_CHAIN = "MERGE (a:Framework {id: $src}) MERGE (b:Framework {id: $dst})"

LINK: dict[Rel, str] = {
    "CHAINS_TO": f"{_CHAIN} MERGE (a)-[r:CHAINS_TO]->(b) SET r.weight = $value",
    "GOOD_FOR": """MERGE (a:Framework {id: $src}) MERGE (b:ProblemType {name: $dst})
MERGE (a)-[r:GOOD_FOR]->(b) SET r.confidence = $value""",
    "USED_BY": """MERGE (a:Framework {id: $src}) MERGE (b:Session {id: $dst})
MERGE (a)-[r:USED_BY]->(b) SET r.success = $value""",
}
LINK_WITH_SOURCE = f"{_CHAIN} MERGE (a)-[r:CHAINS_TO {{source: $source}}]->(b) SET r.weight = $value"
UNLINK: dict[Rel, str] = {
    "CHAINS_TO": f"{_CHAIN_ENDS} WHERE $source IS NULL OR coalesce(r.source, '') = $source DELETE r",
    "GOOD_FOR": "MATCH (:Framework {id: $src})-[r:GOOD_FOR]->(:ProblemType {name: $dst}) DELETE r",
    "USED_BY": "MATCH (:Framework {id: $src})-[r:USED_BY]->(:Session {id: $dst}) DELETE r",
}
REMOVE = (
    "MATCH (f:Framework {id: $id})-[r:CHAINS_TO]-() DELETE r",
    "MATCH (f:Framework {id: $id})-[r:GOOD_FOR]->() DELETE r",
    """MATCH (f:Framework {id: $id}) REMOVE f.name, f.type, f.triggers, f.problem_types, f.version,
    f.updated_at, f.description, f.enabled, f.callers""",
    "MATCH (f:Framework {id: $id}) WHERE NOT (f)--() DELETE f",
)

SELECT_CORRECTED = """
MATCH (f:Framework) WHERE f.name IS NOT NULL
OPTIONAL MATCH (p:Framework)-[c:CHAINS_TO]->(f) WHERE p.id IN $previous AND p.id <> f.id
WITH f, p.id AS pid, max(CASE WHEN c.weight > 1 THEN 1.0 WHEN c.weight < 0 THEN 0.0 ELSE c.weight END) AS w
WITH f, coalesce(sum(w), 0.0) AS chain, collect(CASE WHEN pid IS NULL THEN NULL ELSE [pid, w] END) AS chains
OPTIONAL MATCH (f)-[g:GOOD_FOR]->(t:ProblemType) WHERE t.name IN $types
WITH f, chain, chains, t.name AS name, max(g.confidence) AS sure
WITH f, chain, chains, collect(CASE WHEN name IS NULL THEN NULL ELSE [name, sure] END) AS rated,
     collect(name) AS names, max(sure) AS best
WITH f, chain, chains, rated, best, [t IN coalesce(f.triggers, []) WHERE t IN $words] AS matched,
     [x IN coalesce(f.problem_types, []) WHERE x IN $types AND NOT x IN names] AS listed
WITH f, chains, rated, matched, listed,
     CASE WHEN size(matched) > 0 THEN 0.6 ELSE 0.0 END AS tt,
     CASE WHEN size(listed) > 0 THEN 0.4 ELSE 0.4 * coalesce(best, 0.0) END AS pp,
     CASE WHEN chain > 1.0 THEN 0.3 ELSE 0.3 * chain END AS cc
WHERE $all OR tt + pp + cc > 0
OPTIONAL MATCH (f)-[u:USED_BY]->(:Session)
WITH f, chains, rated, matched, listed, tt, pp, cc, count(u) AS uses,
     sum(CASE WHEN u.success THEN 1 ELSE 0 END) AS successes
RETURN properties(f) AS node, tt, pp, cc, matched, rated, listed, chains, uses, successes
"""

SELECT_LITERAL = """
MATCH (f:Framework) WHERE f.name IS NOT NULL
WITH f, [t IN coalesce(f.triggers, []) WHERE t IN $words] AS matched,
     [x IN coalesce(f.problem_types, []) WHERE x IN $types] AS listed
WITH f, matched, listed, CASE WHEN size(matched) > 0 THEN 0.6 ELSE 0.0 END AS tt,
     CASE WHEN size(listed) > 0 THEN 0.4 ELSE 0.0 END AS pp
WHERE $all OR tt + pp > 0
OPTIONAL MATCH (f)-[c:CHAINS_TO]->(next:Framework) WHERE next.id IN $previous
WITH f, matched, listed, tt, pp, coalesce(sum(c.weight), 0.0) AS chain,
     collect(CASE WHEN next IS NULL THEN NULL ELSE [next.id, c.weight] END) AS chains
RETURN properties(f) AS node, tt, pp, 0.3 * chain AS cc, matched, [] AS rated, listed, chains,
     0 AS uses, 0 AS successes
"""

NODES = "MATCH (f:Framework) WHERE f.name IS NOT NULL RETURN properties(f) AS node ORDER BY f.id"
NODE = "MATCH (f:Framework {id: $id}) WHERE f.name IS NOT NULL RETURN properties(f) AS node"
VOCABULARY = "MATCH (f:Framework) WHERE f.name IS NOT NULL UNWIND f.triggers AS word RETURN DISTINCT word"

_FOUND = "RETURN a.id AS src, {} AS dst, {} AS value, {} AS source"
_CHAINS = _FOUND.format("b.id", "r.weight", "coalesce(r.source, '')")
_GOOD_FOR = _FOUND.format("b.name", "r.confidence", "''")
_USED_BY = _FOUND.format("b.id", "CASE WHEN r.success THEN 1.0 ELSE 0.0 END", "''")
EDGES: dict[Rel, str] = {
    "CHAINS_TO": f"MATCH (a:Framework)-[r:CHAINS_TO]->(b:Framework) {_CHAINS}",
    "GOOD_FOR": f"MATCH (a:Framework)-[r:GOOD_FOR]->(b:ProblemType) {_GOOD_FOR}",
    "USED_BY": f"MATCH (a:Framework)-[r:USED_BY]->(b:Session) {_USED_BY}",
}
EDGES_FROM: dict[Rel, str] = {
    "CHAINS_TO": f"MATCH (a:Framework)-[r:CHAINS_TO]->(b:Framework) WHERE a.id IN $ids {_CHAINS}",
    "GOOD_FOR": f"MATCH (a:Framework)-[r:GOOD_FOR]->(b:ProblemType) WHERE a.id IN $ids {_GOOD_FOR}",
    "USED_BY": f"MATCH (a:Framework)-[r:USED_BY]->(b:Session) WHERE a.id IN $ids {_USED_BY}",
}

POSITION = "MATCH (p:GraphPosition {name: $workspace}) RETURN p.version AS version, p.hash AS hash"
NOTE_POSITION = """MERGE (p:GraphPosition {name: $workspace})
SET p.version = $version, p.hash = $hash"""


def node_map(node: Node) -> dict[str, Any]:
    """A node as the parameter `$node`."""
    lists = ("triggers", "problem_types", "callers")
    texts = ("id", "name", "type", "version", "updated_at", "description", "enabled")
    return {name: getattr(node, name) for name in texts} | {name: list(getattr(node, name)) for name in lists}


def schema_cypher() -> str:
    """A script that puts one agent with its edges into Neo4j: the same text for every agent.

    What it is about comes as parameters (`schema_parameters`). Running it again changes nothing.
    """
    return ";\n\n".join(
        (
            *CONSTRAINTS,
            UPSERT,
            """\
UNWIND $chains AS chain
MERGE (a:Framework {id: chain.src})
MERGE (b:Framework {id: chain.dst})
MERGE (a)-[r:CHAINS_TO]->(b) SET r.weight = chain.weight""",
            """\
UNWIND $good_for AS good
MERGE (a:Framework {id: good.src})
MERGE (b:ProblemType {name: good.dst})
MERGE (a)-[r:GOOD_FOR]->(b) SET r.confidence = good.confidence""",
            "",
        )
    )


def schema_parameters(node: Node, edges: Iterable[Edge]) -> dict[str, Any]:
    """The parameters of `schema_cypher` for one agent.

    Args:
        node: the agent.
        edges: its chains, in both directions, and what it is good for.
    """
    rows = [(edge, {"src": edge.src, "dst": edge.dst, **edge.props}) for edge in sorted(edges)]
    return {
        "node": node_map(node),
        "chains": [row for edge, row in rows if edge.rel == "CHAINS_TO"],
        "good_for": [row for edge, row in rows if edge.rel == "GOOD_FOR"],
    }
