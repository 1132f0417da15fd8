"""The operator as the caller of an iteration: after each result they say what is next."""

from __future__ import annotations

from engine.agents.human import Option
from engine.agents.kinds import Effect, RequestKind
from engine.agents.result import HandoffResult
from engine.crew.contexts import Wanted, from_user
from engine.crew.escalating import TAKEOVER, question_of
from engine.crew.handoffs import Handoffs
from engine.crew.parts import Ask, HandoffError, Question
from engine.crew.requests import Requests
from engine.domain.text import clean_line

DONE = Option(id="done", label="That is all", effect=Effect.ACCEPT)
AGAIN = Option(
    id="again", label="The same agent once more; your text is its task", effect=Effect.RESUME, words="may"
)


class OperatorDecides:
    """Asks the operator (`engine.crew.iterating.Decider`).

    Args:
        requests: how.
        handoffs: what the results are of.
        first: the handoff that it began with.
        attended: whether somebody is there; else one result is all.
    """

    def __init__(self, requests: Requests, handoffs: Handoffs, first: Wanted, *, attended: bool) -> None:
        self._requests, self._handoffs, self._first = requests, handoffs, first
        self._attended = attended
        self.last = first.context.handoff_id
        self._note = ""

    async def next(self, results: tuple[HandoffResult, ...]) -> Wanted | None:
        """See `Decider`."""
        if not self._attended:
            return None
        last = results[-1]
        suggested = tuple(
            Option(id=one, label=f"Hand it to {one}", effect=Effect.REROUTE, args={"agent": one})
            for one in last.suggested_next_agents
        )
        question = Question(
            RequestKind.DECISION,
            "ITERATE",
            f"{last.from_agent} is back; what is next?",
            clean_line(last.output or last.error or "", limit=1_000),
            context=self._note,
            options=(DONE, AGAIN, *suggested),
        )
        self._note = ""
        try:
            answer = await self._requests.ask(self._handoffs.state.handoffs[self.last], question)
        except HandoffError:
            return None
        if answer.option_id in (DONE.id, None) and not (answer.option_id is None and answer.text.strip()):
            return None
        like = self._first.context
        to = answer.option_id if answer.option_id in last.suggested_next_agents else last.from_agent
        ask = Ask(to or last.from_agent, answer.text.strip() or like.task_description, like.expected_output,
                  like.focus_areas, like.ignore_areas, like.priority, like.timeout_seconds)  # fmt: skip
        context = from_user(
            self._handoffs.state, self._handoffs.setting, ask,
            clarity=like.problem_clarity.to_dict(), returns=like.return_behavior,
        )  # fmt: skip
        known = tuple(one.to_analysis() for one in results if one.success)
        context = context.model_copy(update={"previous_analyses": (*like.previous_analyses, *known)})
        return Wanted(context, actor=self._first.actor)

    async def replan(self, results: tuple[HandoffResult, ...]) -> None:
        """See `Decider`: the next question says that another way is wanted."""
        self._note = "Three results in a row brought nothing new: try another agent, or another task."

    async def escalate(self, results: tuple[HandoffResult, ...]) -> bool:
        """See `Decider`."""
        handoff = self._handoffs.state.handoffs[self.last]
        said = "It still brings nothing new after another way was tried."
        question = question_of(
            "STALLED", f"{handoff.agent} does not get on", said, blocking=True, leave_out=()
        )
        try:
            answer = await self._requests.ask(handoff, question)
        except HandoffError:
            return False
        return answer.option_id not in (TAKEOVER.id, "abort")
