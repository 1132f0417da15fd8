"""Runs several handoffs that belong together, one after the other or all at once, and joins their answers.

The internal agent `synthesizer` writes one text of them; that it names every source and every missing member
is checked in code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.core import crew as ce
from engine.crew.handoffs.contexts import HandoffDraft, failed_result, operator_context
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.handoffs.schedule import utc_after
from engine.crew.ontology.context import HandoffContext, PreviousAnalysis
from engine.crew.ontology.kinds import ErrorCode, HandoffMode, HandoffState
from engine.crew.ontology.results import HandoffResult
from engine.crew.ports import HandoffRequest
from engine.crew.state import CrewState

SYNTHESIZER = "synthesizer"
TRIES = 2
"""The first text, and one that is given what the first left out."""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """One text made of several."""

    output: str
    handoff: str = ""
    """The handoff that wrote it; empty where it was put together without a model."""
    warnings: tuple[str, ...] = ()


def unnamed(text: str, agents: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """The agents that a text does not name, by id or by name.

    Args:
        text: the text.
        agents: ids of agents.
        names: their names by id.
    """
    return tuple(
        agent for agent in agents if not any(_says(text, word) for word in (agent, names.get(agent, agent)))
    )


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
    handoffs: Handoffs,
    results: Sequence[HandoffResult],
    missing: Sequence[str],
    like: HandoffContext,
    *,
    actor: str,
) -> Synthesis:
    """Have the answers brought together; where that cannot be done they stand one after the other.

    Args:
        handoffs: the synthesizer's is one of them.
        results: the successes, in the order declared.
        missing: members that gave nothing.
        like: a context of the group: its task, problem and conversation count.
        actor: who asked for it all.
    """
    state = handoffs.state
    names = {agent: entry.spec.name for agent, entry in state.agents.items()}
    if SYNTHESIZER not in state.agents:
        warning = f"no {SYNTHESIZER} is registered; the answers stand one after the other"
        return Synthesis(joined(results, missing, names), warnings=(warning,))
    agents = (*(agent.from_agent for agent in results), *missing)
    left_out: tuple[str, ...] = ()
    for _ in range(TRIES):
        context = _context(handoffs, results, missing, like, left_out)
        name, result = await handoffs.conduct(HandoffDraft(context, actor=actor))
        if not result.success:
            warning = f"{SYNTHESIZER} came to nothing ({result.error}); the answers stand one after the other"
            return Synthesis(joined(results, missing, names), warnings=(warning,))
        left_out = unnamed(result.output, agents, names)
        if not left_out:
            return Synthesis(result.output, name)
    note = "Not named above: " + ", ".join(
        f"{agent} (gave nothing)" if agent in missing else agent for agent in left_out
    )
    return Synthesis(f"{result.output}\n\n{note}.", name, (f"the synthesis left out {', '.join(left_out)}",))


def _context(
    handoffs: Handoffs,
    results: Sequence[HandoffResult],
    missing: Sequence[str],
    like: HandoffContext,
    left_out: Sequence[str],
) -> HandoffContext:
    state: CrewState = handoffs.state
    sources = ", ".join(result.from_agent for result in results)
    task = (
        f"Bring together what {sources} found on: {like.task_description}\nName every one of them by its id."
    )
    if missing:
        task += f"\nSay that these gave nothing: {', '.join(missing)}."
    if left_out:
        task += f"\nYour text before did not name: {', '.join(left_out)}."
    at = utc_after(handoffs.clock)
    entries = [(result, state.agents.get(result.from_agent)) for result in results]
    analyses = tuple(
        result.to_analysis(entry.spec.name if entry is not None else "", at) for result, entry in entries
    )
    ask = HandoffRequest(
        SYNTHESIZER,
        task,
        priority=like.priority,
        metadata={"sources": [result.from_agent for result in results], "missing": list(missing)},
    )
    made = operator_context(
        state, handoffs.setting, ask, clarity=like.problem_clarity.to_dict(), mode=HandoffMode.SEQUENTIAL
    )
    return made.model_copy(update={"previous_analyses": analyses, "conversation": like.conversation})


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None


OnFailure = Literal["stop", "continue"]
NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The result of a group."""

    group: str
    names: tuple[str, ...]
    """The handoff of each member, the last try, in the order given."""
    results: tuple[HandoffResult, ...]
    ok: bool
    code: ErrorCode | None = None
    message: str = ""
    output: str = ""
    """The joined result; empty where the members' results are all there is."""
    synthesis: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def successes(self) -> tuple[HandoffResult, ...]:
        """The results that are one."""
        return tuple(result for result in self.results if result.success)

    @property
    def missing(self) -> tuple[str, ...]:
        """The agents that gave nothing."""
        return tuple(result.from_agent for result in self.results if not result.success)


class HandoffGroups:
    """Runs groups.

    Args:
        handoffs: the members are some of them.
    """

    def __init__(self, handoffs: Handoffs) -> None:
        self._handoffs = handoffs
        self.attended = True
        """Whether an operator can be asked about ties."""

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

    def end(self, together: GroupResult, lost: dict[str, str] | None = None) -> GroupResult:
        """Record the result of a group."""
        ended = ce.GroupEnded(
            group=together.group,
            handoffs=together.names,
            ok=together.ok,
            code=together.code or "",
            message=together.message,
            synthesis=together.synthesis,
            output=together.output,
            lost=lost or {},
        )
        self._handoffs.stream.append(ended)
        return together

    async def parallel(
        self,
        drafts: Sequence[HandoffDraft],
        *,
        group: str = "",
        min_success: int | None = None,
        fail_fast: bool = False,
        synthesize: bool = False,
    ) -> GroupResult:
        """Hand the same moment's work to several, each without a view of the others.

        Cancelling this cancels every member.

        Args:
            drafts: the members.
            group: the group's id, where it was begun.
            min_success: how many have to succeed; None is half of them, rounded up.
            fail_fast: whether the first failure cancels the others.
            synthesize: whether what comes back is brought together.
        """
        least = min_success if min_success is not None else -(-len(drafts) // 2)
        group = group or self.begin(HandoffMode.PARALLEL, drafts, min_success=least)
        tasks: list[asyncio.Task[tuple[str, HandoffResult]]] = []
        first: list[str] = []
        try:
            for draft in drafts:
                draft = replace(draft, group=group)
                first.append(await self._handoffs.hand_over(draft))
                work = self._handoffs.conduct(draft, handed=first[-1])
                tasks.append(asyncio.create_task(work, name=f"{group} {first[-1]}"))
            if fail_fast:
                await self._fail_fast(tasks, first)
            done = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        names, results = tuple(name for name, _ in done), tuple(result for _, result in done)
        together = self._counted(group, names, results, least)
        if together.ok and synthesize:
            together = await self._brought_together(together, drafts[0])
        return self.end(together)

    async def _fail_fast(
        self, tasks: Sequence[asyncio.Task[tuple[str, HandoffResult]]], names: Sequence[str]
    ) -> None:
        left = set(tasks)
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            if any(not task.result()[1].success for task in done):
                others = [name for name, task in zip(names, tasks, strict=True) if task in left]
                await asyncio.gather(
                    *(self._handoffs.endings.cancel(other, "another one failed") for other in others)
                )
                return

    def _counted(
        self, group: str, names: tuple[str, ...], results: tuple[HandoffResult, ...], least: int
    ) -> GroupResult:
        good = sum(result.success for result in results)
        message = f"{good} of {len(results)} succeeded"
        if good >= least:
            return GroupResult(group, names, results, True, message=message)
        return GroupResult(
            group, names, results, False, ErrorCode.QUORUM, message=f"{message}; {least} were needed"
        )

    async def _brought_together(self, together: GroupResult, like: HandoffDraft) -> GroupResult:
        made: Synthesis = await synthesized(
            self._handoffs, together.successes, together.missing, like.context, actor=like.actor
        )
        return replace(together, output=made.output, synthesis=made.handoff, warnings=made.warnings)

    async def sequential(
        self,
        drafts: Sequence[HandoffDraft],
        *,
        group: str = "",
        on_fail: OnFailure = "stop",
        synthesize: bool = False,
    ) -> GroupResult:
        """One after the other, each with what those before it found.

        Args:
            drafts: the members, in order.
            group: the group's id, where it was begun.
            on_fail: what follows a failure.
            synthesize: whether what comes back is brought together.
        """
        group = group or self.begin(HandoffMode.SEQUENTIAL, drafts)
        analyses: list[PreviousAnalysis] = []
        names: list[str] = []
        results: list[HandoffResult] = []
        for index, draft in enumerate(drafts):
            given = (*draft.context.previous_analyses, *analyses)
            member = replace(
                draft, context=draft.context.model_copy(update={"previous_analyses": given}), group=group
            )
            name, result = await self._handoffs.conduct(member)
            names.append(name)
            results.append(result)
            if result.success:
                spec = self._handoffs.state.handoffs[name].spec
                title = spec.name if spec is not None else ""
                analyses.append(result.to_analysis(title, utc_after(self._handoffs.clock)))
            elif on_fail != "continue":
                for rest in drafts[index + 1 :]:
                    made = self.never(replace(rest, group=group))
                    names.append(made.handoff_id)
                    results.append(made)
                break
        good = all(result.success for result in results)
        message = f"{sum(result.success for result in results)} of {len(results)} succeeded"
        failed = next((result.error_code for result in results if not result.success), None)
        together = GroupResult(group, tuple(names), tuple(results), good, failed, message)
        if synthesize and together.successes:
            together = await self._brought_together(together, drafts[0])
        return self.end(together)

    def never(self, draft: HandoffDraft, reason: str = NOT_STARTED) -> HandoffResult:
        """The entry of a member that was never begun."""
        made = self._handoffs.written(draft)
        result = failed_result(made, ErrorCode.CANCELLED, reason, HandoffState.CANCELLED)
        self._handoffs.moves.finish(made.id, HandoffState.CANCELLED, result, reason=reason)
        return result
