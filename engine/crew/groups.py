"""Several handoffs that belong together: one after the other, or all at once (ontology spec §1.11)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from engine.agents.context import PreviousAnalysis
from engine.agents.human import Option
from engine.agents.kinds import Effect, ErrorCode, HandoffMode, HandoffState, RequestKind
from engine.agents.result import HandoffResult
from engine.crew.clocks import moment
from engine.crew.contexts import Wanted, failure
from engine.crew.escalating import ABORT, RETRY, TAKEOVER
from engine.crew.handoffs import Handoffs
from engine.crew.parts import HandoffError, Question
from engine.crew.requests import Requests
from engine.crew.synthesis import Synthesis, synthesized
from engine.domain.text import clean_line
from engine.journal import crew_events as ce

OnFailure = Literal["stop", "continue", "ask"]
NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class Together:
    """What came of a group."""

    group: str
    names: tuple[str, ...]
    """The handoff of each member, the last try, in the order given."""
    results: tuple[HandoffResult, ...]
    ok: bool
    code: ErrorCode | None = None
    message: str = ""
    output: str = ""
    """What came of all; empty where the members' results are all there is."""
    synthesis: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def successes(self) -> tuple[HandoffResult, ...]:
        """The results that are one."""
        return tuple(one for one in self.results if one.success)

    @property
    def missing(self) -> tuple[str, ...]:
        """The agents that gave nothing."""
        return tuple(one.from_agent for one in self.results if not one.success)


class Groups:
    """Runs groups.

    Args:
        handoffs: the members are some of them.
        requests: asks whether to go on after a failure.
    """

    def __init__(self, handoffs: Handoffs, requests: Requests) -> None:
        self._handoffs, self._requests = handoffs, requests
        self.attended = True

    def begin(
        self,
        mode: HandoffMode,
        wanted: Sequence[Wanted],
        *,
        min_success: int = 0,
        candidates: Sequence[dict[str, object]] = (),
    ) -> str:
        """Write a group down; gives its id."""
        name = f"b-{len(self._handoffs.state.groups) + 1}"
        begun = ce.GroupBegun(
            group=name,
            mode=mode,
            agents=tuple(one.context.to_agent for one in wanted),
            min_success=min_success,
            candidates=tuple(candidates),
            caller=wanted[0].caller if wanted else "",
        )
        self._handoffs.spine.append(begun, actor=wanted[0].actor if wanted else "system")
        return name

    def end(self, together: Together, lost: dict[str, str] | None = None) -> Together:
        """Write down what came of a group."""
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
        self._handoffs.spine.append(ended)
        return together

    async def parallel(
        self,
        wanted: Sequence[Wanted],
        *,
        group: str = "",
        min_success: int | None = None,
        fail_fast: bool = False,
        synthesize: bool = False,
    ) -> Together:
        """Hand the same moment's work to several, each without a view of the others.

        Cancelling this cancels every member.

        Args:
            wanted: the members.
            group: the group's id, where it was begun.
            min_success: how many have to succeed; None is half of them, rounded up.
            fail_fast: whether the first failure cancels the others.
            synthesize: whether what comes back is brought together.
        """
        least = min_success if min_success is not None else -(-len(wanted) // 2)
        group = group or self.begin(HandoffMode.PARALLEL, wanted, min_success=least)
        tasks: list[asyncio.Task[tuple[str, HandoffResult]]] = []
        first: list[str] = []
        try:
            for one in wanted:
                one = replace(one, group=group)
                first.append(await self._handoffs.hand_over(one))
                work = self._handoffs.conduct(one, handed=first[-1])
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
            together = await self._brought_together(together, wanted[0])
        return self.end(together)

    async def _fail_fast(
        self, tasks: Sequence[asyncio.Task[tuple[str, HandoffResult]]], names: Sequence[str]
    ) -> None:
        left = set(tasks)
        while left:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            if any(not task.result()[1].success for task in done):
                others = [name for name, task in zip(names, tasks, strict=True) if task in left]
                await asyncio.gather(*(self._handoffs.cancel(one, "another one failed") for one in others))
                return

    def _counted(
        self, group: str, names: tuple[str, ...], results: tuple[HandoffResult, ...], least: int
    ) -> Together:
        good = sum(result.success for result in results)
        said = f"{good} of {len(results)} succeeded"
        if good >= least:
            return Together(group, names, results, True, message=said)
        return Together(
            group, names, results, False, ErrorCode.QUORUM, message=f"{said}; {least} were needed"
        )

    async def _brought_together(self, together: Together, like: Wanted) -> Together:
        made: Synthesis = await synthesized(
            self._handoffs, together.successes, together.missing, like.context, actor=like.actor
        )
        return replace(together, output=made.output, synthesis=made.handoff, warnings=made.warnings)

    async def sequential(
        self,
        wanted: Sequence[Wanted],
        *,
        group: str = "",
        on_fail: OnFailure = "stop",
        synthesize: bool = False,
    ) -> Together:
        """One after the other, each with what those before it found.

        Args:
            wanted: the members, in order.
            group: the group's id, where it was begun.
            on_fail: what follows a failure.
            synthesize: whether what comes back is brought together.
        """
        group = group or self.begin(HandoffMode.SEQUENTIAL, wanted)
        found: list[PreviousAnalysis] = []
        names: list[str] = []
        results: list[HandoffResult] = []
        for index, one in enumerate(wanted):
            given = (*one.context.previous_analyses, *found)
            member = replace(
                one, context=one.context.model_copy(update={"previous_analyses": given}), group=group
            )
            name, result = await self._handoffs.conduct(member)
            while not result.success and on_fail == "ask" and (kept := await self._asked(name, result)):
                name, result = kept
            names.append(name)
            results.append(result)
            if result.success:
                spec = self._handoffs.state.handoffs[name].spec
                title = spec.name if spec is not None else ""
                found.append(result.to_analysis(title, moment(self._handoffs.clock)))
            elif on_fail != "continue" and not self._goes_on(name):
                for rest in wanted[index + 1 :]:
                    made = self.never(replace(rest, group=group))
                    names.append(made.handoff_id)
                    results.append(made)
                break
        good = all(result.success for result in results)
        said = f"{sum(result.success for result in results)} of {len(results)} succeeded"
        failed = next((result.error_code for result in results if not result.success), None)
        together = Together(group, tuple(names), tuple(results), good, failed, said)
        if synthesize and together.successes:
            together = await self._brought_together(together, wanted[0])
        return self.end(together)

    def _goes_on(self, name: str) -> bool:
        """Whether the operator said to go on after a failure."""
        asked = [
            one
            for one in self._handoffs.state.requests.values()
            if one.reason_code == "SEQUENCE_FAILED" and one.handoff_id == name and one.answer is not None
        ]
        return bool(asked) and asked[-1].answer is not None and asked[-1].answer.option_id == "continue"

    async def _asked(self, name: str, result: HandoffResult) -> tuple[str, HandoffResult] | None:
        """Ask what is to follow a failure; a second try or a text by hand, or None where it stays one."""
        if not self.attended:
            return None
        handoff = self._handoffs.state.handoffs[name]
        go_on = Option(id="continue", label="Go on without it", effect=Effect.SKIP)
        question = Question(
            RequestKind.DECISION,
            "SEQUENCE_FAILED",
            clean_line(f"{handoff.agent}: {result.error}", limit=80),
            result.error or "it failed",
            options=(go_on, RETRY, TAKEOVER, ABORT),
        )
        with suppress(HandoffError):  # it was retried or written by hand instead, or dismissed
            await self._requests.ask(handoff, question)
        after = [one for one in self._handoffs.state.handoffs.values() if one.context.retry_of == name]
        if not after:
            return None
        return after[-1].id, await self._handoffs.outcome(after[-1].id, own=True)

    def never(self, wanted: Wanted, reason: str = NOT_STARTED) -> HandoffResult:
        """The entry of a member that was never begun."""
        made = self._handoffs.written(wanted)
        result = failure(made, ErrorCode.CANCELLED, reason, HandoffState.CANCELLED)
        self._handoffs.finish(made.id, HandoffState.CANCELLED, result, reason=reason)
        return result
