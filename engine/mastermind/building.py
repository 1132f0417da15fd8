"""Builds of agents as jobs: seen, cancelled and waited for as all jobs are (ontology spec §2, §4).

The builds themselves are the crew's (`engine.crew.builds`), and so are their events.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.domain.mastermind import JobStatus
from engine.domain.text import clean_line
from engine.mastermind.parts import Asked, JobRefused, Outcome, Progress

if TYPE_CHECKING:
    from engine.building.findings import BuildResult, PhaseRecord
    from engine.crew.builds.builds import Builds, Wanted
    from engine.crew.crew import Crew

PHASES = 7
STATUS = {
    "built": JobStatus.DONE,
    "up_to_date": JobStatus.DONE,
    "dry_run": JobStatus.DONE,
    "needs_operator": JobStatus.NEEDS_OPERATOR,
    "failed": JobStatus.FAILED,
}


class WithCrew(Protocol):
    """What builds need of the engine; `engine.engine.Engine` is one."""

    async def crew(self) -> Crew:
        """Who registers agents."""


class BuildJobs:
    """`agent_build` and `agent_watch`.

    Args:
        ground: has the crew.
    """

    def __init__(self, ground: WithCrew) -> None:
        self._ground = ground

    async def build(self, asked: Asked, progress: Progress) -> Outcome:
        """Build an agent of the skill that the argument names."""
        builds = await self._builds()

        def told(record: PhaseRecord) -> None:
            mark = "passed" if record.passed else "failed"
            progress.tell(record.number, PHASES, f"{record.number} {record.name} {mark}")

        return _outcome(await builds.build(_wanted(asked), told, actor=asked.actor))

    async def watch(self, asked: Asked, progress: Progress) -> Outcome:
        """Build an agent, and again after each change, until the job is cancelled."""
        builds = await self._builds()
        wanted = _wanted(asked)
        times = 0

        def told(result: BuildResult) -> None:
            nonlocal times
            times += 1
            progress.tell(times, 0, f"build {times}: {_outcome(result).message.partition(chr(10))[0]}")

        await builds.watch(wanted, told)
        return Outcome(JobStatus.DONE, "the watch has ended")

    async def _builds(self) -> Builds:
        builds = (await self._ground.crew()).builds
        if builds is None:
            raise JobRefused("nobody builds agents here")
        return builds


def _wanted(asked: Asked) -> Wanted:
    from engine.crew.builds.builds import Wanted

    path, said = asked.argument.strip(), asked.options
    if not path:
        raise JobRefused("the path of a skill's folder is missing")
    place = Path(path).expanduser()
    if not place.is_dir() and place.name.lower() != "skill.md":
        raise JobRefused(f"{clean_line(path, limit=200)} is no folder with a SKILL.md")
    overrides: dict[str, Any] = {}
    if said.get("type"):
        overrides["type"] = said["type"]
    if said.get("optional-mcp"):
        overrides["mcp"] = "optional"
    return Wanted(
        place,
        strict=bool(said.get("strict")),
        dry_run=bool(said.get("dry-run")),
        live=bool(said.get("live")),
        trust=True if said.get("trust") else None,
        interactive=True,
        overrides=overrides,
    )


def _outcome(result: BuildResult) -> Outcome:
    from engine.building.telling import report

    return Outcome(STATUS[result.status.value], report(result), result.as_json())
