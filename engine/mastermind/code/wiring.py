"""Python projects of the sandbox, plugged into Mastermind."""

from __future__ import annotations

from engine.journal.store import DATA_DIRECTORY
from engine.mastermind.code.parts import CodeAuditor, Fixers, Looking, ProjectSuites
from engine.mastermind.code.reading import CodeReading
from engine.mastermind.mastermind import Mastermind
from engine.sandbox import SandboxPolicy

HELD_OUT = "held_out"
"""Tests that no candidate sees, by project, in the workspace's data directory."""


def register(mastermind: Mastermind) -> None:
    """Let Python projects be audited, mended and judged, and read by `analyze_codebase` and `basegen`."""
    house = mastermind.house

    def policy() -> SandboxPolicy:
        return house.sandbox().policy

    looking = Looking(policy)
    mastermind.plug(
        auditor=CodeAuditor(house.workspace, looking),
        proposer=Fixers(looking),
        suite=ProjectSuites(looking, house.workspace / DATA_DIRECTORY / HELD_OUT),
    )
    reading = CodeReading(house, policy)
    mastermind.register("analyze_codebase", reading.analyze)
    mastermind.register("basegen", reading.basegen)
