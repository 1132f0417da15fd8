"""`build PATH` in the cockpit, and `b` on the board: a job of Mastermind, shown phase by phase."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from app.cockpit.crew_views import LOOK_S, CrewViews, Told
from engine.domain import mastermind_commands as mm

if TYPE_CHECKING:
    from engine.building.findings import BuildResult
    from engine.crew.state import CrewState


class BuildKeys(CrewViews):
    """Builds that a line or a key asks for."""

    def _rebuild(self, name: str) -> None:
        self.run_worker(self._rebuilt(name), name="rebuild", exit_on_error=False)

    async def _rebuilt(self, name: str) -> None:
        """Build an agent anew of the folder that it came from, on the builder screen."""
        from engine.building.registering import RegistrationError

        builds = (await self._open_crew()).builds
        assert builds is not None
        try:
            wanted = await builds.again(name)
        except RegistrationError as error:
            self._said_of_crew(str(error))
        else:
            options = _as_options(dict(wanted.overrides))
            asked = mm.StartJob(verb="agent_build", argument=str(wanted.path), options=options)
            self._leave_crew(self._build_entered, asked)

    def _build_entered(self, asked: mm.StartJob) -> None:
        """Build an agent and show it."""

        async def built(told: Told, overrides: dict[str, Any]) -> BuildResult:
            options = {**asked.options, **_as_options(overrides)}
            return await self._built_by_job(asked.model_copy(update={"options": options}), told)

        self._open_build(asked.argument, built)

    async def _built_by_job(self, asked: mm.StartJob, told: Told) -> BuildResult:
        """Have a job build; cancelling this cancels the job."""
        from engine.building.findings import BuildResult, Finding, Level, Status, read_result

        crew, mastermind = await self._open_crew(), await self._open_mastermind()
        known, shown = set(crew.state.builds), 0
        receipt = await self._submit(asked)
        if not receipt.ok:
            return BuildResult(
                Status.FAILED, findings=(Finding(Level.ERROR, "REFUSED", receipt.message, asked.argument),)
            )
        job = str(receipt.data["job"])
        self._own_jobs |= {job}
        over = asyncio.ensure_future(mastermind.wait(job))
        try:
            while not over.done():
                await asyncio.wait([over], timeout=LOOK_S)
                shown = _tell(crew.state, known, shown, told)
        except asyncio.CancelledError:
            await self._submit(mm.CancelJob(job=job))
            raise
        record = over.result()
        if not record.answer:
            found = Finding(Level.ERROR, record.status.value.upper(), record.message, asked.argument)
            return BuildResult(Status.FAILED, findings=(found,))
        return read_result(record.answer)


def _tell(state: CrewState, known: set[str], shown: int, told: Told) -> int:
    """Tell of the phases that are over by now; gives how many were told."""
    from engine.building.findings import read_record

    fresh = [one for name, one in state.builds.items() if name not in known]
    phases = fresh[0].phases if fresh else ()
    for given in phases[shown:]:
        told(read_record(given))
    return max(shown, len(phases))


def _as_options(overrides: dict[str, Any]) -> dict[str, str]:
    """What was chosen on the screen, as options of the verb."""
    options = {}
    if "type" in overrides:
        options["type"] = str(overrides["type"])
    if overrides.get("trusted") == "trust":
        options["trust"] = ""
    if overrides.get("mcp") == "optional":
        options["optional-mcp"] = ""
    return options
