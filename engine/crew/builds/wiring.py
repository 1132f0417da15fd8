"""Plugging the builds into the crew that is being opened."""

from __future__ import annotations

from typing import Any

from engine.crew.builds.builds import Builds


async def register(crew: Any) -> None:
    """Let a crew build agents, and have the built-in ones."""
    ground = crew.ground
    builds = crew.builds = Builds(crew, ground.root, ground.config.policy, thinks=ground.model is not None)
    ground.script_proofs(builds.prover.scripted)
    crew.desk.build_phase, crew.desk.resources = builds.phase, builds.resources
    await builds.open()
