"""The job that builds an agent of a skill."""

from __future__ import annotations

from pathlib import Path

from engine.core.improvement import JobStatus
from engine.core.text import clean_line
from engine.crew.builder.findings import PendingBuild, PhaseRecord, build_report
from engine.crew.builds import builds_of
from engine.improve.ports import JobRefused, JobRequest, JobResult, MastermindHost, Progress

PHASES = 7
BUILD_STATUS = {
    "built": JobStatus.DONE,
    "up_to_date": JobStatus.DONE,
    "dry_run": JobStatus.DONE,
    "needs_operator": JobStatus.NEEDS_OPERATOR,
    "failed": JobStatus.FAILED,
}


async def build_agent(host: MastermindHost, asked: JobRequest, progress: Progress) -> JobResult:
    """`agent_build`: build an agent of the skill that the argument names; the crew has its events."""

    def report(record: PhaseRecord) -> None:
        mark = "passed" if record.passed else "failed"
        progress.tell(record.number, PHASES, f"{record.number} {record.name} {mark}")

    builds = builds_of(await host.crew())
    if builds is None:
        raise JobRefused("agents cannot be built here: this engine has no builder")
    result = await builds.build(_pending_build(asked), report, actor=asked.actor)
    return JobResult(BUILD_STATUS[result.status.value], build_report(result), result.as_json())


def _pending_build(asked: JobRequest) -> PendingBuild:
    path, options = asked.argument.strip(), asked.options
    if not path:
        raise JobRefused("the path of a skill's folder is missing")
    place = Path(path).expanduser()
    if not place.is_dir() and place.name.lower() != "skill.md":
        raise JobRefused(f"{clean_line(path, limit=200)} is no folder with a SKILL.md")
    overrides = {"type": options["type"]} if options.get("type") else {}
    return PendingBuild(
        place,
        dry_run=bool(options.get("dry-run")),
        trust=True if options.get("trust") else None,
        overrides=overrides,
    )
