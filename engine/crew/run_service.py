"""The service that runs call, and the recovery of what an earlier session left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core import crew as ce
from engine.core.reasons import Reason
from engine.core.text import clean_line
from engine.crew.builder.agent_folders import read_files, skill_folder
from engine.crew.builder.registration import BuildPaths
from engine.crew.groups import HandoffGroups
from engine.crew.handoff_results import HandoffResults
from engine.crew.handoffs.admission import DEPTH, reaches
from engine.crew.handoffs.contexts import HandoffDraft, child_context
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.handoffs.remote import REMOTE
from engine.crew.handoffs.transitions import OpenHandoff
from engine.crew.ontology.context import ORCHESTRATOR, Answer, new_handoff_id
from engine.crew.ontology.criteria import Rubric, RubricVerdict, Subject
from engine.crew.ontology.kinds import AgentType, ErrorCode, HandoffState, HandoffType
from engine.crew.ontology.results import HandoffResult
from engine.crew.ontology.spec import AgentSpec, SkillFiles
from engine.crew.operator_requests import OperatorRequests
from engine.crew.ports import HandoffError, HandoffRequest, OperatorQuestion, RunningHandoff, Worker
from engine.crew.speaker import SpeakerStack
from engine.crew.state import Handoff

ENDED = Reason("handoff.ended")
STOP_S = 2.0
"""How long the end of a session waits until runs of the one before are stopped."""
ENGINE = "engine"
"""Why a handoff waits whose run the engine holds for the operator."""


async def recover(
    handoffs: Handoffs, requests: OperatorRequests, groups: HandoffGroups, *, foreign: bool = False
) -> None:
    """Bring what the last session left to where it can continue.

    What ran has failed with all that was below it, save what keeps its progress, which rests at its last
    checkpoint; what waits for the operator waits on; what was queued is admitted again.

    Args:
        handoffs: all handoffs.
        requests: what the operator is asked.
        groups: end where their last member has.
        foreign: the journal is somebody else's, so that nothing of it is begun.

    Raises:
        JournalError: it could not be recorded.
    """
    open_handoffs = list(handoffs.state.open())
    lost: dict[str, Reason] = {}
    for handoff in open_handoffs:
        handoffs.moves.live[handoff.id] = OpenHandoff()
        if handoff.context.parent_id in lost:
            lost[handoff.id] = Reason("handoff.above", handoff=handoff.context.parent_id, why=ENDED)
        elif handoff.state is HandoffState.RUNNING and not (_keeps(handoff) or _goes_on_elsewhere(handoff)):
            lost[handoff.id] = ENDED
    if (worker := handoffs.moves.worker) is not None:
        begun = await worker.recall({handoff.id: handoff.run for handoff in open_handoffs})
        for name, run in begun.items():
            handoffs.stream.append(ce.RunBegun(handoff=name, run=run))
    for handoff in reversed(open_handoffs):
        match handoff.state:
            case HandoffState.RUNNING if handoff.id in lost:
                handoffs.moves.fail(handoff.id, ErrorCode.INTERNAL, ENDED)
            case _ if handoff.id in lost:
                requests.cancel_of(handoff.id)
                handoffs.moves.fail(handoff.id, ErrorCode.CANCELLED, lost[handoff.id], HandoffState.CANCELLED)
            case HandoffState.RUNNING if handoff.remote:
                handoffs.moves.deadlines.begin(handoff.id, handoff.limit_s, handoff.spent_s)
            case HandoffState.RUNNING:
                handoffs.moves.move(handoff.id, HandoffState.PAUSED, reason=ENDED, spent_s=handoff.spent_s)
                handoffs.moves.deadlines.hold(handoff.id, "paused")
            case HandoffState.PAUSED:
                handoffs.moves.deadlines.hold(handoff.id, "paused")
            case HandoffState.WAITING_HUMAN:
                _waits(handoffs, requests, handoff)
    for handoff in open_handoffs:
        if handoff.state is not HandoffState.QUEUED or handoff.id in lost or handoff.remote:
            continue
        if foreign:
            handoffs.moves.fail(handoff.id, ErrorCode.INTERNAL, Reason("handoff.not-yours"))
        else:
            await handoffs.admit(handoff.id)
    groups.settle()
    await handoffs.stream.commit()
    over = [handoff.run for handoff in handoffs.state.handoffs.values() if handoff.run and not handoff.open]
    if worker is not None and over:
        stopping = handoffs.moves.start_task(_stop(worker, over), "stop runs of before")
        handoffs.moves.stopping = stopping


async def _stop(worker: Worker, runs: Sequence[str]) -> None:
    """End runs whose handoffs are over: they had failed, or their program ended between result and end."""
    for run in runs:
        await worker.stop(run, ENDED)


def _waits(handoffs: Handoffs, requests: OperatorRequests, handoff: Handoff) -> None:
    limit = handoff.limit_s or float(handoff.context.timeout_seconds)
    handoffs.moves.deadlines.begin(handoff.id, limit, handoff.spent_s)
    asked = [request.id for request in requests.state.open_requests(handoff.id) if request.blocking]
    for why in asked or [REMOTE if handoff.remote else ENGINE]:
        handoffs.moves.add_wait(handoff.id, why)


async def suspend(handoffs: Handoffs) -> None:
    """End a session in good order: what runs is cancelled, or rests where it keeps its progress."""
    handoffs.moves.closing = True
    cuts = []
    for handoff in list(handoffs.state.open()):
        doomed = handoffs.moves.live[handoff.id].doomed
        if handoff.state is not HandoffState.RUNNING or doomed or _goes_on_elsewhere(handoff):
            continue
        if _keeps(handoff):
            handoffs.moves.move(handoff.id, HandoffState.PAUSED, reason=Reason("handoff.session-ended"))
        else:
            message = "the session ended"
            cuts.append(handoffs.moves.cut(handoff.id, HandoffState.CANCELLED, ErrorCode.CANCELLED, message))
    if cuts:
        await asyncio.wait(cuts)
    if handoffs.moves.stopping is not None:
        # A session of one line would else never come to the end of what it began to settle.
        await asyncio.wait([handoffs.moves.stopping], timeout=STOP_S)
    await handoffs.moves.drop_tasks()


def _goes_on_elsewhere(handoff: Handoff) -> bool:
    """Whether another engine has it, and no run of this one waits for it."""
    return handoff.remote and not handoff.caller


def _keeps(handoff: Handoff) -> bool:
    """Whether its type can continue from what it kept."""
    return handoff.spec is not None and handoff.spec.type.keeps_progress


BUILT = "agents/"
"""How the source of an agent begins that has a folder in the workspace."""


class RunService:
    """Where runs come with what they need.

    Args:
        handoffs: what they work on.
        requests: what they ask the operator.
        results: takes their results.
        groups: several at once.
        floor: who speaks with the operator.
    """

    def __init__(
        self,
        handoffs: Handoffs,
        requests: OperatorRequests,
        results: HandoffResults,
        groups: HandoffGroups,
        floor: SpeakerStack,
    ) -> None:
        self._handoffs, self._requests, self._results = handoffs, requests, results
        self._groups, self._floor = groups, floor
        self.skills: BuildPaths | None = None
        """Where the files lie that came with skills; None where there are none."""

    # -------------------------------------------------------------- what runs ask

    def handoff_of(self, run: str) -> RunningHandoff | None:
        """The handoff that a run works on; None for agents that work on none."""
        handoff = self._handoffs.state.handoff_of(run)
        return handoff.as_running if handoff is not None else None

    def callable_by(self, run: str, *, remote: bool = False) -> Sequence[AgentSpec]:
        """The agents that this run may delegate to, now.

        Args:
            run: whose agent calls.
            remote: with those that are not registered here and may be on another engine, by a specification
                that says only that.
        """
        caller = self._handoffs.state.handoff_of(run)
        if caller is None or caller.spec is None or len(caller.context.lineage) + 2 > DEPTH:
            return ()
        line = {*caller.context.lineage, caller.agent}
        state = self._handoffs.state
        elsewhere = [
            AgentSpec(id=name, name=name, type=AgentType.OPERATOR, description="an agent of another engine")
            for name in caller.spec.handoff.routing.can_delegate_to
            if remote and state.remote and name not in state.agents and name not in line
        ]
        here = (
            entry.spec
            for entry in state.agents.values()
            if entry.enabled
            and entry.spec.id not in line
            and entry.spec.handoff.supports.delegate
            and entry.spec.handoff.routing.admits(caller.agent)
            and reaches(caller.spec, entry.spec.id)
        )
        return (*elsewhere, *here)

    def skill_folder(self, run: str) -> Path | None:
        """Where the files lie that came with the skill of a run's agent; a sub-agent that is registered
        nowhere has its caller's. None where there are none. Blocking.
        """
        state = self._handoffs.state
        handoff = state.handoff_of(run)
        while handoff is not None and handoff.spec is not None and self.skills is not None:
            known = state.agents.get(handoff.agent)
            if known is not None and not known.source.startswith(BUILT):
                return None
            if known is not None or not handoff.context.parent_id:
                return skill_folder(self.skills, handoff.spec.id, handoff.spec.version)
            handoff = state.handoffs.get(handoff.context.parent_id)
        return None

    async def skill_of(self, run: str, opened: Sequence[str] = ()) -> SkillFiles | None:
        """The files that came with the skill of a run's agent, with what stands in those that it has opened;
        None where none did.
        """
        folder = self.skill_folder(run)
        return await asyncio.to_thread(read_files, folder, opened) if folder is not None else None

    async def delegate(self, run: str, ask: HandoffRequest) -> HandoffResult:
        """Hand work to another agent and wait for what comes back; cancelling this cancels that handoff.

        A refusal (cycle, depth, clarity …) is a result of state `rejected`, as are failures and
        timeouts of theirs.
        """
        parent = await self._of(run)
        draft = self._wanted(parent, run, ask)
        if isinstance(draft, HandoffResult):
            return draft
        _, result = await self._handoffs.run_to_end(draft)
        return result

    async def gather(
        self, run: str, asks: Sequence[HandoffRequest], *, min_success: int | None = None
    ) -> Sequence[HandoffResult]:
        """Hand the same moment's work to several, each without a view of the others; results in the
        order given.
        """
        parent = await self._of(run)
        made = [self._wanted(parent, run, ask) for ask in asks]
        good = [draft for draft in made if isinstance(draft, HandoffDraft)]
        if not good:
            return tuple(draft for draft in made if isinstance(draft, HandoffResult))
        results = iter(await self._groups.parallel(good, min_success=min_success))
        return tuple(next(results) if isinstance(draft, HandoffDraft) else draft for draft in made)

    async def transfer(self, run: str, to: str, reason: str) -> str:
        """Give the floor to another agent; returns the result in words.

        Raises:
            HandoffError: it may not, and the floor stays.
        """
        return await self._floor.transfer(to, reason, run=run, actor=(await self._of(run)).agent)

    async def accept(self, run: str, result: HandoffResult) -> None:
        """Take the result of a run: its handoff ends with it.

        Raises:
            HandoffError: the handoff has ended (a late result is logged and dropped), or it is another
            agent's.
        """
        await self._results.accept(await self._of(run), result)

    async def ask(self, run: str, question: OperatorQuestion) -> Answer:
        """Ask the operator and wait; the handoff waits meanwhile and its clock, with all clocks above
        it, stands still.

        A notice (`blocking=False`) returns at once with an empty answer.

        Raises:
            HandoffError: the request was dismissed or cancelled.
        """
        handoff = await self._of(run)
        self._goes_on(handoff)
        return await self._requests.ask(handoff, question)

    async def keep(self, run: str, what: str, progress: dict[str, Any], note: str = "") -> None:
        """Record how far a run is: `what` is `pipeline.phase`, `guided.step`, `debate.turn`, `debate.ledger`,
        `debate.verdict`, `role.turn` or `rubric`; `progress` becomes `RunningHandoff.progress`.
        """
        handoff = await self._of(run)
        kept = ce.ProgressKept(handoff=handoff.id, what=what, progress=progress, note=clean_line(note))
        self._handoffs.stream.append(kept, actor=handoff.agent)
        await self._handoffs.stream.commit()

    async def judge(
        self, run: str, rubrics: Sequence[Rubric], subject: Subject
    ) -> Mapping[Rubric, RubricVerdict]:
        """Have a model judge what the run gives by rubrics; see `Worker.judge`."""
        self._goes_on(await self._of(run))
        worker = self._handoffs.moves.worker
        return await worker.judge(run, rubrics, subject) if worker is not None else {}

    async def log(self, run: str) -> frozenset[str]:
        """What a run can name as its source: see `Worker.log`, and the files of its skill, by their paths."""
        await self._of(run)
        worker = self._handoffs.moves.worker
        names = await worker.log(run) if worker is not None else frozenset()
        files = await self.skill_of(run)
        return names | frozenset(files.sizes if files is not None else ())

    async def park(self, run: str, idea: str) -> str:
        """Put an idea aside for the operator; gives its id. The same idea is parked once."""
        handoff = await self._of(run)
        ideas = self._handoffs.state.ideas
        for parked in self._handoffs.state.parked(handoff.agent):
            if parked.text == idea:
                return parked.id
        name = f"i-{len(ideas) + 1}"
        event = ce.IdeaParked(idea=name, handoff=handoff.id, agent=handoff.agent, text=idea)
        self._handoffs.stream.append(event, actor=handoff.agent)
        await self._handoffs.stream.commit()
        return name

    def parked(self, run: str) -> Sequence[str]:
        """What the agent of a run has parked and that was neither adopted nor dropped, oldest first."""
        state = self._handoffs.state
        handoff = state.handoff_of(run)
        return tuple(idea.text for idea in state.parked(handoff.agent)) if handoff is not None else ()

    # -------------------------------------------------------------- what the engine tells

    async def ended(self, run: str, *, ok: bool, text: str, code: ErrorCode | None = None) -> None:
        """See `RunObserver`."""
        if (handoff := await self._reported(run)) is not None:
            await self._results.ended(handoff, ok=ok, text=text, code=code)

    async def wait_began(self, run: str, why: str) -> None:
        """See `RunObserver`."""
        if (handoff := await self._reported(run)) is not None:
            self._handoffs.moves.add_wait(handoff.id, ENGINE)

    async def wait_ended(self, run: str) -> None:
        """See `RunObserver`."""
        if (handoff := await self._reported(run)) is not None:
            self._handoffs.moves.remove_wait(handoff.id, ENGINE)

    async def allowed(self, run: str, rule: str) -> None:
        """See `RunObserver`; what a run made up for itself has no rules of its own."""
        if rule in await self.rules_of(run) or (handoff := await self._handoffs.handoff_of_run(run)) is None:
            return
        if self._handoffs.state.registered(handoff):
            kept = ce.PermissionKept(agent=handoff.agent, tool=rule, allow=True)
            self._handoffs.stream.append(kept, actor="operator")
            await self._handoffs.stream.commit()

    async def rules_of(self, run: str) -> Sequence[str]:
        """See `RunObserver`."""
        handoff, state = await self._handoffs.handoff_of_run(run), self._handoffs.state
        if handoff is None or not state.registered(handoff):
            return ()
        return tuple(
            rule for (who, rule), allow in state.permissions.items() if allow and who == handoff.agent
        )

    # -------------------------------------------------------------- inside

    async def _reported(self, run: str) -> Handoff | None:
        """The handoff of a run that tells something; None where nothing is taken in any more."""
        return None if self._handoffs.moves.closing else await self._handoffs.handoff_of_run(run)

    async def _of(self, run: str) -> Handoff:
        if (handoff := await self._handoffs.handoff_of_run(run)) is None:
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{clean_line(run, limit=80)} works on no handoff")
        return handoff

    def _goes_on(self, handoff: Handoff) -> None:
        live = self._handoffs.moves.live.get(handoff.id)
        if not handoff.open or live is None or live.doomed:
            raise HandoffError(ErrorCode.CANCELLED, f"{handoff.id} is over; nothing more comes of it")

    def _wanted(self, parent: Handoff, run: str, ask: HandoffRequest) -> HandoffDraft | HandoffResult:
        """The handoff that is asked for, or why it cannot be made."""
        try:
            self._goes_on(parent)
            context = child_context(
                self._handoffs.state, self._handoffs.setting, parent, ask, kind=HandoffType.DELEGATE
            )
        except HandoffError as error:
            return HandoffResult(
                handoff_id=new_handoff_id(),
                from_agent=ask.to if ask.to in self._handoffs.state.agents else ORCHESTRATOR,
                to_agent=parent.agent,
                success=False,
                error=error.message,
                error_code=error.code,
                state=HandoffState.REJECTED,
            )
        return HandoffDraft(context, ask.spec, run, actor=parent.agent)
