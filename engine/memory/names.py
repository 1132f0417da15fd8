"""Short names of what agents may ask of memory; the seed's names are understood as well.

Source: spec master-loop-and-memory §2, the tools that a model needs.
"""

from __future__ import annotations

OWNER = "agent:"
"""With this a workflow's tags begin that say whose it is."""
KEPT = "@"
"""With this the idempotency keys begin of what is written from the journal, and no others."""

NAMES = {
    "begin_workflow": "create_workflow",
    "set_workflow": "update_workflow_status",
    "action": "get_action_details",
    "actions": "get_recent_actions",
    "need": "add_action_dependency",
    "keep": "record_artifact",
    "artifacts": "get_artifacts",
    "artifact": "get_artifact_by_id",
    "think": "record_thought",
    "begin_chain": "create_thought_chain",
    "chain": "get_thought_chain",
    "store": "store_memory",
    "update": "update_memory",
    "link": "create_memory_link",
    "search": "hybrid_search_memories",
    "like": "search_semantic_memories",
    "query": "query_memories",
    "get": "get_memory_by_id",
    "linked": "get_linked_memories",
    "working": "get_working_memory",
    "focus": "focus_memory",
}
"""Our names of the requests that agents may make, and the seed's."""


def owner_tag(agent: str) -> str:
    """The tag of a workflow that is an agent's; one with tags of several is theirs together."""
    return f"{OWNER}{agent}"
