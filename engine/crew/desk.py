"""What runs ask of the manager, and what the engine tells it of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.agents.context import new_handoff_id
from engine.agents.criteria import Subject
from engine.agents.human import Answer
from engine.agents.kinds import AgentType, ErrorCode, HandoffType
from engine.agents.result import HandoffResult
from engine.agents.rubrics import Rubric, RubricVerdict
from engine.agents.skill_files import SkillFiles
from engine.agents.spec import ANYBODY, AgentSpec
from engine.building.skill_files import SkillFolders, read_files
from engine.crew.admission import DEPTH, reaches
from engine.crew.contexts import Wanted, below, not_made
from engine.crew.floor import Floor
from engine.crew.groups import Groups
from engine.crew.handoffs import Handoffs
from engine.crew.parts import Ask, Built, HandoffError, Question, Running
from engine.crew.recovering import ENGINE
from engine.crew.requests import Requests
from engine.crew.returning import Returns
from engine.crew.state import Handoff
from engine.domain.text import clean_line
from engine.journal import crew_events as ce

Phases = Callable[[Handoff, int, Mapping[str, str]], Awaitable[Built]]
BUILT = "agents/"
"""How the source of an agent begins that has a folder in the workspace."""


class CrewDesk:
    """Where runs come with what they need.

    Args:
        handoffs: what they work on.
        requests: what they ask the operator.
        returns: takes their results.
        groups: several at once.
        floor: who speaks with the operator.
    """

    def __init__(
        self, handoffs: Handoffs, requests: Requests, returns: Returns, groups: Groups, floor: Floor
    ) -> None:
        self._handoffs, self._requests, self._returns = handoffs, requests, returns
        self._groups, self._floor = groups, floor
        self.build_phase: Phases | None = None
        """Who builds agents; None where nobody does."""
        self.skills: SkillFolders | None = None
        """Who finds the files that came with skills; None where nobody does."""

    # -------------------------------------------------------------- what runs ask

    def handoff_of(self, run: str) -> Running | None:
        """See `Desk`."""
        found = self._handoffs.state.handoff_of(run)
        return found.as_running if found is not None else None

    def callable_by(self, run: str) -> Sequence[AgentSpec]:
        """See `Desk`."""
        found = self._handoffs.state.handoff_of(run)
        if found is None or found.spec is None or len(found.context.lineage) + 2 > DEPTH:
            return ()
        line = {*found.context.lineage, found.agent}
        return tuple(
            one.spec
            for one in self._handoffs.state.agents.values()
            if one.enabled
            and one.spec.id not in line
            and one.spec.handoff.supports.delegate
            and _may_call(found.agent, one.spec)
            and reaches(found.spec, one.spec)
        )

    def skill_folder(self, run: str) -> Path | None:
        """Where the files lie that came with the skill of a run's agent; a sub-agent that is registered
        nowhere has its caller's. None where there are none. Blocking.
        """
        state = self._handoffs.state
        found = state.handoff_of(run)
        while found is not None and found.spec is not None and self.skills is not None:
            known = state.agents.get(found.agent)
            if known is not None and not known.source.startswith(BUILT):
                return None
            if known is not None or not found.context.parent_id:
                return self.skills.of(found.spec.id, found.spec.version)
            found = state.handoffs.get(found.context.parent_id)
        return None

    async def skill_of(self, run: str, opened: Sequence[str] = ()) -> SkillFiles | None:
        """See `Desk`."""
        folder = self.skill_folder(run)
        return await asyncio.to_thread(read_files, folder, opened) if folder is not None else None

    def delegating_role(self, run: str) -> AgentSpec | None:
        """See `Desk`."""
        found = self._handoffs.state.handoff_of(run)
        above = self._handoffs.state.handoffs.get(found.context.parent_id) if found is not None else None
        spec = above.spec if above is not None else None
        return spec if spec is not None and spec.type is AgentType.ROLE else None

    async def delegate(self, run: str, ask: Ask) -> HandoffResult:
        """See `Desk`."""
        parent = await self._of(run)
        wanted = self._wanted(parent, run, ask)
        if isinstance(wanted, HandoffResult):
            return wanted
        _, result = await self._handoffs.conduct(wanted)
        return result

    async def gather(
        self, run: str, asks: Sequence[Ask], *, min_success: int | None = None
    ) -> Sequence[HandoffResult]:
        """See `Desk`."""
        parent = await self._of(run)
        made = [self._wanted(parent, run, ask) for ask in asks]
        good = [one for one in made if isinstance(one, Wanted)]
        if not good:
            return tuple(one for one in made if isinstance(one, HandoffResult))
        together = await self._groups.parallel(good, min_success=min_success)
        found = iter(together.results)
        return tuple(next(found) if isinstance(one, Wanted) else one for one in made)

    async def transfer(self, run: str, to: str, reason: str) -> str:
        """See `Desk`."""
        return await self._floor.transfer(to, reason, run=run, actor=(await self._of(run)).agent)

    async def accept(self, run: str, result: HandoffResult) -> None:
        """See `Desk`."""
        await self._returns.accept(await self._of(run), result)

    async def ask(self, run: str, question: Question) -> Answer:
        """See `Desk`."""
        handoff = await self._of(run)
        self._goes_on(handoff)
        return await self._requests.ask(handoff, question)

    async def keep(self, run: str, what: str, progress: dict[str, Any], note: str = "") -> None:
        """See `Desk`."""
        handoff = await self._of(run)
        kept = ce.ProgressKept(handoff=handoff.id, what=what, progress=progress, note=clean_line(note))
        self._handoffs.spine.append(kept, actor=handoff.agent)
        await self._handoffs.spine.commit()

    async def judge(
        self, run: str, rubrics: Sequence[Rubric], subject: Subject
    ) -> Mapping[Rubric, RubricVerdict]:
        """See `Desk`."""
        self._goes_on(await self._of(run))
        worker = self._handoffs.worker
        return await worker.judge(run, rubrics, subject) if worker is not None else {}

    async def log(self, run: str) -> frozenset[str]:
        """See `Desk`."""
        await self._of(run)
        worker = self._handoffs.worker
        found = await worker.log(run) if worker is not None else frozenset()
        files = await self.skill_of(run)
        return found | frozenset(files.sizes if files is not None else ())

    async def park(self, run: str, idea: str) -> str:
        """See `Desk`."""
        handoff = await self._of(run)
        ideas = self._handoffs.state.ideas
        for one in self._handoffs.state.parked(handoff.agent):
            if one.text == idea:
                return one.id
        name = f"i-{len(ideas) + 1}"
        said = ce.IdeaParked(idea=name, handoff=handoff.id, agent=handoff.agent, text=idea)
        self._handoffs.spine.append(said, actor=handoff.agent)
        await self._handoffs.spine.commit()
        return name

    def parked(self, run: str) -> Sequence[str]:
        """See `Desk`."""
        state = self._handoffs.state
        found = state.handoff_of(run)
        return tuple(one.text for one in state.parked(found.agent)) if found is not None else ()

    async def build(self, run: str, phase: int, decided: Mapping[str, str]) -> Built:
        """See `Desk`."""
        handoff = await self._of(run)
        if self.build_phase is None:
            raise HandoffError(ErrorCode.TOOL_UNAVAILABLE, "nobody builds agents here")
        return await self.build_phase(handoff, phase, decided)

    # -------------------------------------------------------------- what the engine tells

    async def ended(self, run: str, *, ok: bool, text: str, code: ErrorCode | None = None) -> None:
        """See `Watcher`."""
        handoff = await self._handoffs.found(run)
        if handoff is not None and not self._handoffs.closing:
            await self._returns.ended(handoff, ok=ok, text=text, code=code)

    async def waits(self, run: str, why: str) -> None:
        """See `Watcher`."""
        handoff = await self._handoffs.found(run)
        if handoff is not None and not self._handoffs.closing:
            self._handoffs.waits(handoff.id, ENGINE)

    async def goes_on(self, run: str) -> None:
        """See `Watcher`."""
        handoff = await self._handoffs.found(run)
        if handoff is not None and not self._handoffs.closing:
            self._handoffs.goes_on(handoff.id, ENGINE)

    async def allowed(self, run: str, rule: str) -> None:
        """See `Watcher`; what a run made up for itself has no rules of its own."""
        if rule in await self.rules_of(run) or (handoff := await self._handoffs.found(run)) is None:
            return
        if self._handoffs.state.registered(handoff):
            kept = ce.PermissionKept(agent=handoff.agent, tool=rule, allow=True)
            self._handoffs.spine.append(kept, actor="operator")
            await self._handoffs.spine.commit()

    async def rules_of(self, run: str) -> Sequence[str]:
        """See `Watcher`."""
        handoff, state = await self._handoffs.found(run), self._handoffs.state
        if handoff is None or not state.registered(handoff):
            return ()
        return tuple(
            rule for (who, rule), allow in state.permissions.items() if allow and who == handoff.agent
        )

    # -------------------------------------------------------------- inside

    async def _of(self, run: str) -> Handoff:
        if (found := await self._handoffs.found(run)) is None:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{clean_line(run, limit=80)} works on no handoff")
        return found

    def _goes_on(self, handoff: Handoff) -> None:
        live = self._handoffs.live.get(handoff.id)
        if not handoff.open or live is None or live.doomed:
            raise HandoffError(ErrorCode.CANCELLED, f"{handoff.id} is over; nothing more comes of it")

    def _wanted(self, parent: Handoff, run: str, ask: Ask) -> Wanted | HandoffResult:
        """The handoff that is asked for, or why it cannot be made."""
        try:
            self._goes_on(parent)
            context = below(
                self._handoffs.state, self._handoffs.setting, parent, ask, kind=HandoffType.DELEGATE
            )
        except HandoffError as error:
            to = ask.to if ask.to in self._handoffs.state.agents else "orchestrator"
            return not_made(to, parent.agent, error, handoff=new_handoff_id())
        return Wanted(context, ask.spec, run, actor=parent.agent)


def _may_call(who: str, spec: AgentSpec) -> bool:
    callers = spec.handoff.routing.can_be_called_by
    return callers == ANYBODY or who in callers
