"""Runs several handoffs that belong together: one after the other, all at once, or the best of several.

The internal agent `synthesizer` writes one text of them; sources and missing members that it does not name
are named below it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from engine.core import crew as ce
from engine.core.agents import RECORDING
from engine.crew.handoffs.contexts import HandoffDraft, failed_result, operator_context
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.handoffs.schedule import time_of
from engine.crew.ontology.context import HandoffContext, PreviousAnalysis
from engine.crew.ontology.kinds import AgentType, ErrorCode, HandoffMode, HandoffState
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffError, HandoffRequest
from engine.crew.selection import CLARIFIER, LIMIT, Candidate, Selection, Signal, choose, signal_in
from engine.crew.state import CrewState, Group, Handoff
from engine.value import replace

SYNTHESIZER = "synthesizer"


def unnamed(text: str, agents: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """The agents that a text does not name, by id or by name.

    Args:
        text: the text.
        agents: ids of agents.
        names: their names by id.
    """
    words = {agent: {agent, names.get(agent, agent)} for agent in agents}
    return tuple(agent for agent in agents if not any(_says(text, word) for word in words[agent]))


def joined(results: Sequence[HandoffResult], missing: Sequence[str], names: dict[str, str]) -> str:
    """The answers one after the other, each under its agent's name, with what is missing."""
    parts = [
        f"## {names.get(result.from_agent, result.from_agent)} ({result.from_agent})\n\n{result.output}"
        for result in results
    ]
    if missing:
        parts.append("Missing: " + ", ".join(missing) + ".")
    return "\n\n".join(parts)


async def synthesized(
    handoffs: Handoffs, results: Sequence[HandoffResult], like: HandoffContext, *, actor: str
) -> tuple[str, str]:
    """Have the answers brought together; where that cannot be done they stand one after the other.

    Gives one text, and the handoff that wrote it; empty where it was put together without a model.

    Args:
        handoffs: the synthesizer's is one of them.
        results: those of all, in the order declared.
        like: a context of the group: its task, problem and conversation count.
        actor: who asked for it all.
    """
    state = handoffs.state
    missing = tuple(result.from_agent for result in results if not result.success)
    results = tuple(result for result in results if result.success)
    names = {agent: entry.spec.name for agent, entry in state.agents.items()}
    if SYNTHESIZER not in state.agents:
        return joined(results, missing, names), ""
    agents = (*(result.from_agent for result in results), *missing)
    context = _context(handoffs, results, missing, like)
    name, result = await handoffs.run_to_end(HandoffDraft(context, actor=actor))
    if not result.success:
        return joined(results, missing, names), ""
    left_out = unnamed(result.output, agents, names)
    if not left_out:
        return result.output, name
    named = (f"{agent} (gave nothing)" if agent in missing else agent for agent in left_out)
    return f"{result.output}\n\nNot named above: {', '.join(named)}.", name


def _context(
    handoffs: Handoffs, results: Sequence[HandoffResult], missing: Sequence[str], like: HandoffContext
) -> HandoffContext:
    state: CrewState = handoffs.state
    sources = ", ".join(result.from_agent for result in results)
    task = (
        f"Bring together what {sources} found on: {like.task_description}\nName every one of them by its id."
    )
    if missing:
        task += f"\nSay that these gave nothing: {', '.join(missing)}."
    at = time_of(handoffs.clock)
    names = {agent: entry.spec.name for agent, entry in state.agents.items()}
    analyses = tuple(result.to_analysis(names.get(result.from_agent, ""), at) for result in results)
    ask = HandoffRequest(
        SYNTHESIZER,
        task,
        priority=like.priority,
        metadata={
            "sources": [result.from_agent for result in results],
            "missing": list(missing),
            **{name: value for name, value in like.metadata.items() if name == RECORDING},
        },
    )
    made = operator_context(
        state, handoffs.setting, ask, clarity=like.problem_clarity.to_dict(), mode=HandoffMode.SEQUENTIAL
    )
    return made.model_copy(update={"previous_analyses": analyses, "conversation": like.conversation})


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None


NOT_STARTED = "not started"


class HandoffGroups:
    """Runs groups; one that is not run (any more) ends with its last member.

    Args:
        handoffs: the members are some of them.
    """

    def __init__(self, handoffs: Handoffs) -> None:
        self._handoffs = handoffs
        self._run: set[str] = set()
        """Groups that something runs in this session."""

    @contextmanager
    def running(self, group: str) -> Iterator[None]:
        """Run a group; where that comes to nothing, the group ends with its last member."""
        self._run.add(group)
        try:
            yield
        finally:
            self._run.discard(group)
            self.settle()

    def member_ended(self, handoff: Handoff, _result: HandoffResult) -> None:
        """A handoff has ended, and with it perhaps its group."""
        if handoff.group:
            self.settle()

    def settle(self) -> None:
        """End the groups that nothing runs and whose members have all ended."""
        for group in list(self._handoffs.state.groups.values()):
            if group.ended or group.id in self._run or self._handoffs.moves.closing:
                continue
            if not any(member.open for member in self._members(group)):
                self.end(self._result(group))

    def _members(self, group: Group) -> list[Handoff]:
        """The last try of each member, in the order of asking."""
        first: dict[str, str] = {}
        last: dict[str, Handoff] = {}
        for name in group.handoffs:
            member = self._handoffs.state.handoffs[name]
            first[name] = first.get(member.context.retry_of or "", name)
            last[first[name]] = member
        return list(last.values())

    def _result(self, group: Group) -> ce.GroupEnded:
        """How a group ends whose members have."""
        selective = group.mode == HandoffMode.SELECTIVE
        members = self._members(group)[-1:] if selective else self._members(group)
        results = [member.result for member in members if member.result is not None]
        good, count = sum(result.success for result in results), len(group.agents)
        least = count if group.mode == HandoffMode.SEQUENTIAL else max(1, group.min_success)
        message, code = f"{good} of {count} succeeded", None
        if selective:
            message = f"{members[0].agent} was used" if members else "nobody was used"
        if good < least:
            code = next((result.error_code for result in results if not result.success), None)
            if group.mode == HandoffMode.PARALLEL:
                message, code = f"{message}; {least} were needed", ErrorCode.QUORUM
        return ce.GroupEnded(
            group=group.id,
            handoffs=tuple(member.id for member in members),
            ok=good >= least,
            code=code or "",
            message=message,
            output=results[0].output if selective and results else "",
        )

    async def ended(self, group: str) -> ce.GroupEnded:
        """How a group ends, once what the operator tried again of it is over, too."""
        known = self._handoffs.state.groups
        while left := [member.id for member in self._members(known[group]) if member.open]:
            await self._handoffs.outcome(left[0])
        return self._result(known[group])

    def results(self, ended: ce.GroupEnded) -> tuple[HandoffResult, ...]:
        """The results of its members, in the order given."""
        results = (self._handoffs.state.handoffs[name].result for name in ended.handoffs)
        return tuple(result for result in results if result is not None)

    def end(self, ended: ce.GroupEnded) -> tuple[HandoffResult, ...]:
        """Record the end of a group; gives the results of its members."""
        self._handoffs.stream.append(ended)
        return self.results(ended)

    def begin(
        self,
        mode: HandoffMode,
        drafts: Sequence[HandoffDraft],
        *,
        min_success: int = 0,
        candidates: Sequence[dict[str, object]] = (),
    ) -> str:
        """Write a group down; gives its id."""
        name = f"b-{len(self._handoffs.state.groups) + 1}"
        begun = ce.GroupBegun(
            group=name,
            mode=mode,
            agents=tuple(draft.context.to_agent for draft in drafts),
            min_success=min_success,
            candidates=tuple(candidates),
            caller=drafts[0].caller if drafts else "",
        )
        self._handoffs.stream.append(begun, actor=drafts[0].actor if drafts else "system")
        return name

    async def parallel(
        self,
        drafts: Sequence[HandoffDraft],
        *,
        group: str = "",
        min_success: int | None = None,
        synthesize: bool = False,
    ) -> tuple[HandoffResult, ...]:
        """Hand the same moment's work to several, each without a view of the others; gives their results.

        Cancelling this cancels every member.

        Args:
            drafts: the members.
            group: the group's id, where it was begun.
            min_success: how many have to succeed; None is half of them, rounded up.
            synthesize: whether what comes back is brought together.
        """
        least = min_success if min_success is not None else -(-len(drafts) // 2)
        group = group or self.begin(HandoffMode.PARALLEL, drafts, min_success=least)
        tasks: list[asyncio.Task[tuple[str, HandoffResult]]] = []
        with self.running(group):
            try:
                for draft in drafts:
                    draft = replace(draft, group=group)
                    name = await self._handoffs.hand_over(draft)
                    work = self._handoffs.run_to_end(draft, handed=name)
                    tasks.append(asyncio.create_task(work, name=f"{group} {name}"))
                await asyncio.gather(*tasks)
            except BaseException:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise
            ended, like = await self.ended(group), drafts[0]
            if ended.ok and synthesize:
                made = synthesized(self._handoffs, self.results(ended), like.context, actor=like.actor)
                text, by = await made
                ended = ended.model_copy(update={"output": text, "synthesis": by})
            return self.end(ended)

    async def sequential(self, drafts: Sequence[HandoffDraft], group: str) -> tuple[HandoffResult, ...]:
        """One after the other, each with what those before it found; a failure ends it. Gives their results.

        Args:
            drafts: the members, in order.
            group: the group's id.
        """
        analyses: list[PreviousAnalysis] = []
        with self.running(group):
            for index, draft in enumerate(drafts):
                given = (*draft.context.previous_analyses, *analyses)
                member = replace(
                    draft, context=draft.context.model_copy(update={"previous_analyses": given}), group=group
                )
                name, result = await self._handoffs.run_to_end(member)
                if not result.success:
                    for rest in drafts[index + 1 :]:
                        self.not_started(replace(rest, group=group))
                    break
                spec = self._handoffs.state.handoffs[name].spec
                title = spec.name if spec is not None else ""
                analyses.append(result.to_analysis(title, time_of(self._handoffs.clock)))
            return self.end(await self.ended(group))

    def not_started(self, draft: HandoffDraft) -> None:
        """The entry of a member that was never begun."""
        made = self._handoffs.written(draft)
        result = failed_result(made, ErrorCode.CANCELLED, NOT_STARTED, HandoffState.CANCELLED)
        self._handoffs.moves.finish(made.id, HandoffState.CANCELLED, result, reason=NOT_STARTED)


FALLBACKS = 2
"""How many others are tried where one cannot begin."""


class SelectiveMode:
    """Chooses, hands over, and falls back.

    Args:
        handoffs: what it makes.
        groups: the record of it.
        learns: whether the ends of earlier work count.
    """

    def __init__(self, handoffs: Handoffs, groups: HandoffGroups, *, learns: bool) -> None:
        self._handoffs, self._groups, self._learns = handoffs, groups, learns

    def select(self, text: str, among: Sequence[str] = (), limit: int = LIMIT) -> tuple[Signal, Selection]:
        """What of a text counts, and who is selected for it; changes nothing."""
        state = self._handoffs.state
        specs = [entry.spec for entry in state.agents.values()]
        able = (name for name, entry in state.agents.items() if entry.enabled and entry.spec.selectable)
        there = tuple(name for name in able if not among or name in among)
        ended = {"previous": state.finished(), "done": state.finished(text)}
        signal = signal_in(text, specs, **ended, available=there, limit=limit)
        uses, outcomes = (state.uses, state.outcomes()) if self._learns else ({}, ())
        return signal, choose(specs, uses, signal, outcomes)

    def candidates(self, text: str, among: Sequence[str]) -> tuple[Candidate, ...]:
        """Who could do a task, the best first; the clarifier where nothing speaks for anyone.

        Raises:
            HandoffError: there is no candidate.
        """
        agents = self._handoffs.state.agents
        for candidate in among:
            if candidate not in agents:
                raise HandoffError(ErrorCode.UNKNOWN_AGENT, f"no agent {candidate} is registered")
        able = [entry.spec.id for entry in agents.values() if entry.enabled and entry.spec.selectable]
        _, scored = self.select(text, among)
        both = (*scored.rows, *scored.lost)
        selection = [candidate for candidate in both if candidate.id in (*able, CLARIFIER)]
        clarifier = agents.get(CLARIFIER)
        if all(candidate.lost for candidate in selection) and clarifier is not None and clarifier.enabled:
            why = ("nothing in the task speaks for another agent",)
            selection.insert(0, Candidate(CLARIFIER, why=why))
        if all(candidate.lost for candidate in selection):
            raise HandoffError(ErrorCode.UNKNOWN_AGENT, "nothing in the task speaks for any agent")
        return tuple(selection)

    async def run(
        self, candidates: Sequence[Candidate], make: Callable[[str], HandoffDraft], group: str
    ) -> None:
        """Hand a task to the best candidate; one that cannot begin is followed by the next.

        Args:
            candidates: the candidates, the best first.
            make: the handoff to a candidate.
            group: the group's id.
        """
        lost = {candidate.id: candidate.lost for candidate in candidates if candidate.lost}
        order = [candidate for candidate in candidates if not candidate.lost]
        used = ""
        tried: list[str] = []
        with self._groups.running(group):
            for candidate in order[: FALLBACKS + 1]:
                name, result = await self._handoffs.run_to_end(
                    replace(make(candidate.id), group=group), retries=False
                )
                tried.append(candidate.id)
                used = self._handoffs.state.handoffs[name].agent
                if not _cannot_begin(result):
                    break
                lost[candidate.id] = f"it could not begin: {result.error}"
            for candidate in candidates:
                if candidate.id != used and candidate.id not in lost:
                    why = "was not tried: two fallbacks at most" if len(tried) > FALLBACKS else "scored lower"
                    lost[candidate.id] = why
            ended = await self._groups.ended(group)
            self._groups.end(ended.model_copy(update={"lost": lost}))

    def begin(self, candidates: Sequence[Candidate], make: Callable[[str], HandoffDraft]) -> str:
        """Write the selection down, with every candidate's score; gives its group's id."""
        drafts = [make(candidate.id) for candidate in candidates if not candidate.lost]
        rows = [
            {"agent": each.id, "score": each.score, "parts": each.parts, "why": list(each.why)}
            | {"lost": each.lost}
            for each in candidates
        ]
        return self._groups.begin(HandoffMode.SELECTIVE, drafts, min_success=1, candidates=rows)

    def clarifies(self, candidates: Sequence[Candidate]) -> bool:
        """Whether the best candidate is a role, which takes the floor instead of a task."""
        entry = self._handoffs.state.agents.get(candidates[0].id)
        role = entry is not None and entry.spec.type is AgentType.ROLE
        return entry is not None and role and entry.spec.handoff.supports.transfer


def _cannot_begin(result: HandoffResult) -> bool:
    return result.state is HandoffState.REJECTED or result.error_code is ErrorCode.TOOL_UNAVAILABLE
