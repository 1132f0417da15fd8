"""What the manager itself does with the operator's answers: a second try, a result by hand, what there is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from engine.agents.human import Answer, HumanRequest, Option
from engine.agents.kinds import Effect, ErrorCode, HandoffType
from engine.agents.result import HandoffResult
from engine.crew.contexts import again
from engine.crew.escalating import ACCEPT, RETRY, TAKEOVER, Escalations, question_of
from engine.crew.floor import Floor
from engine.crew.groups import Groups, Together
from engine.crew.handoffs import Handoffs
from engine.crew.parts import HandoffError
from engine.crew.requests import Requests
from engine.crew.returning import Returns
from engine.crew.state import Handoff
from engine.journal import crew_events as ce


class Answers:
    """Follows options that are the manager's to follow; all others are the asker's.

    Args:
        handoffs: what the answers are about.
        requests: where they come from.
        returns: takes results that the operator wrote.
        escalations: has the texts.
        floor: gives the floor once more.
        groups: records what became of a group.
    """

    def __init__(
        self,
        handoffs: Handoffs,
        requests: Requests,
        returns: Returns,
        escalations: Escalations,
        floor: Floor,
        groups: Groups,
    ) -> None:
        self._handoffs, self._requests, self._returns = handoffs, requests, returns
        self._escalations, self._floor, self._groups = escalations, floor, groups
        requests.followed = self.followed

    async def followed(self, request: HumanRequest, option: Option | None, answer: Answer) -> bool:
        """Do what an option says; False where it is for who asked."""
        if option is None:
            return False
        if group := option.args.get("group"):
            return self._settle_group(str(group), option, answer)
        handoff = self._handoffs.state.handoffs.get(request.handoff_id or "")
        if handoff is None:
            return False
        if option.effect is Effect.TAKEOVER:
            await self._returns.take_over(handoff, answer.text, answer.by)
            return True
        if handoff.open:
            return False
        if option.effect is Effect.RETRY:
            await self.retry(handoff, answer.by)
            return True
        if option.effect is Effect.ACCEPT:
            text = self._escalations.text_for(request, answer)
            await self._returns.take_over(handoff, text, answer.by)
            return True
        return False

    async def retry(self, handoff: Handoff, by: str) -> str:
        """Hand the same over once more; gives the new handoff's id.

        Raises:
            HandoffError: it is not over, or the floor cannot be given again.
            JournalError: it could not be recorded.
        """
        if handoff.open:
            raise HandoffError(
                ErrorCode.BAD_CONTEXT, f"{handoff.id} is {handoff.state.words}; cancel it first"
            )
        if handoff.context.handoff_type is HandoffType.TRANSFER:
            await self._floor.transfer(handoff.agent, handoff.context.task_description, actor=by)
            return self._handoffs.state.floor[-1].handoff
        wanted = again(self._handoffs.state, self._handoffs.setting, handoff, actor=by, caller="")
        name = await self._handoffs.hand_over(wanted)
        self._handoffs.own(self._handoffs.conduct(wanted, handed=name), f"retry {name}")
        return name

    def missed(self, together: Together) -> None:
        """Ask about a group of the operator's that has too few successes."""
        args = {"group": together.group}
        first = tuple(
            one.model_copy(update={"args": args})
            for one in (RETRY, ACCEPT, TAKEOVER)
            if one is not ACCEPT or together.successes
        )
        left_out = tuple(question_of("QUORUM", "x", "x").options)[:-1]
        question = question_of(
            "QUORUM",
            f"{together.group}: {together.message}",
            f"{together.group}: {together.message}; missing: {', '.join(together.missing)}",
            first=first,
            leave_out=left_out,
        )
        self._requests.open(None, question)

    async def _try_group(self, name: str, by: str) -> None:
        """Hand over once more what failed of a group, and settle it by what it has then."""
        state = self._handoffs.state
        group = state.groups[name]
        tried = []
        for one in [state.handoffs[each] for each in group.handoffs]:
            wanted = again(state, self._handoffs.setting, one, actor=by, caller="")
            failed = one.result is None or not one.result.success
            tried.append(self._handoffs.conduct(wanted) if failed else _as_it_is(one))
        made = await asyncio.gather(*tried)
        results = tuple(result for _, result in made)
        done = sum(one.success for one in results)
        ok = done >= group.min_success
        together = Together(
            name,
            tuple(each for each, _ in made),
            results,
            ok,
            None if ok else ErrorCode.QUORUM,
            f"{done} of {len(results)} succeeded, {group.min_success} were needed",
            "" if not ok else _joined(results),
        )
        self._groups.end(together, group.lost)
        if not ok:
            self.missed(together)

    def _settle_group(self, name: str, option: Option, answer: Answer) -> bool:
        group = self._handoffs.state.groups[name]
        if option.effect is Effect.RETRY:
            self._handoffs.own(self._try_group(name, answer.by), f"retry {name}")
            return True
        results = [self._handoffs.state.handoffs[one].result for one in group.handoffs]
        kept = _joined([one for one in results if one is not None])
        text = answer.text if option.effect is Effect.TAKEOVER else answer.text.strip() or kept
        ended = ce.GroupEnded(
            group=name,
            handoffs=group.handoffs,
            ok=True,
            message="settled by you",
            output=text,
            lost=group.lost,
        )
        self._handoffs.spine.append(ended, actor=answer.by)
        return True


async def _as_it_is(handoff: Handoff) -> tuple[str, HandoffResult]:
    assert handoff.result is not None
    return handoff.id, handoff.result


def _joined(results: Sequence[HandoffResult]) -> str:
    return "\n\n".join(f"## {one.from_agent}\n\n{one.output}" for one in results if one.success)
