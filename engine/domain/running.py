"""Runs: agents of the engine that work on a handoff by an agent's specification.

Only names stand here, so that the engine knows runs without the ontology (`engine.agents`).
"""

from __future__ import annotations

RUN_TYPES = ("role", "operator", "collaborative", "pipeline", "guided")
"""Types of agents that work on a handoff; the values of `engine.agents.kinds.AgentType`."""
BY_SPEC = "spec"
"""The thinker of a run: its type's method makes the plan, and a model decides what needs thought."""
CREW = "crew"
"""The tool by which a run reaches the others and the operator."""
SPEC, HANDOFF, PROGRESS = "spec", "handoff", "progress"
"""Where a run's configuration has its specification, what was handed to it, and how far others came."""
PROOF = "proof"
"""Where a handoff's metadata says that it proves a new agent (`engine.crew.builds.proving`), and how."""

RETURNED = "crew.returned"
"""Beliefs of a run: how its handoff ended by its own word."""
REPAIRS = "crew.repairs"
"""How often what it wanted to return, or to say, was sent back."""
VIEWS = "crew.views"
"""What its sub-agents answered."""
PIPELINE, GUIDED, ROLE, DEBATE = "crew.pipeline", "crew.guided", "crew.role", "crew.debate"
"""How far it is, as the machines of `engine.agents.methods` say."""
TURNS = "crew.turns"
"""What was said between a role and the operator."""
NOTE = "crew.note"
"""What the operator is to know with the next question."""
WANTED = "crew.suggest"
"""The guided step for which the operator wants a draft."""
DECIDED = "crew.decided"
"""What the operator decided about the build of an agent, by what was asked about."""
OPENED = "crew.opened"
"""Files of its skill that it has opened, by path."""
AWAY = "crew.away"
"""To whom a role gave the floor; it waits until it has it again."""
