"""When something goes to the operator by itself: fixed reasons with fixed options (ontology spec §1.13).

What was handed over has ended by then and stays as it is; an answer makes a new handoff. At least one option
of each lets the operator write the result by hand.
"""

from __future__ import annotations

from engine.agents.human import Answer, HumanRequest, Option
from engine.agents.kinds import Effect, ErrorCode, HandoffState, Priority, RequestKind, RequestState
from engine.agents.result import HandoffResult
from engine.crew.parts import HandoffError, Question
from engine.crew.requests import Requests
from engine.crew.state import CrewState, Handoff
from engine.domain.text import clean_line

RETRY = Option(id="retry", label="Try again", effect=Effect.RETRY)
ACCEPT = Option(id="accept", label="Take what there is", effect=Effect.ACCEPT)
TAKEOVER = Option(id="takeover", label="Write the result by hand", effect=Effect.TAKEOVER)
ABORT = Option(id="abort", label="Leave it", effect=Effect.ABORT)
GO_ON = Option(id="go_on", label="Go on", effect=Effect.RESUME)

OPTIONS: dict[str, tuple[Option, ...]] = {
    "QUALITY_GATE": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "CHECKPOINT": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "QUORUM": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "DEBATE_CONTESTED": (ACCEPT, RETRY, TAKEOVER, ABORT),
    "DEBATE_INCOMPLETE": (RETRY, TAKEOVER, ABORT),
    "CLARITY_REFUSED": (RETRY, TAKEOVER, ABORT),
    "URGENT_TIMEOUT": (RETRY, ACCEPT, TAKEOVER, ABORT),
    "STALLED": (GO_ON, TAKEOVER, ABORT),
    "BUDGET_80": (GO_ON, TAKEOVER),
    "BUDGET_100": (GO_ON, TAKEOVER, ABORT),
    "SELECTION_TIE": (TAKEOVER, ABORT),
    "FLOOR_FAILED": (RETRY, TAKEOVER, ABORT),
}
"""The options of each reason; those of a tie come after one for each candidate."""
_FAILURES = {
    ErrorCode.QUALITY_GATE: "QUALITY_GATE",
    ErrorCode.CHECKPOINT: "CHECKPOINT",
    ErrorCode.QUORUM: "QUORUM",
    ErrorCode.DEBATE_INCOMPLETE: "DEBATE_INCOMPLETE",
}
TEXT = 8_000
"""Characters of a question of the manager's own."""
NOTICE_SHARE, FULL_SHARE = 0.8, 1.0


def question_of(
    code: str,
    title: str,
    text: str,
    *,
    first: tuple[Option, ...] = (),
    blocking: bool = False,
    context: str = "",
    leave_out: tuple[Option, ...] = (),
) -> Question:
    """A question of the manager's own, with the options of its reason."""
    options = tuple(one for one in OPTIONS[code] if one not in leave_out)
    return Question(
        RequestKind.DECISION,
        code,
        clean_line(title, limit=80),
        text[:TEXT],
        context=context[:TEXT],
        options=(*first, *options),
        blocking=blocking,
    )


def reason_of(state: CrewState, handoff: Handoff, result: HandoffResult) -> str:
    """Why the end of a handoff goes to the operator; empty when it does not."""
    if result.state is HandoffState.REJECTED and result.error_code is ErrorCode.INSUFFICIENT_CLARITY:
        session = handoff.context.session_id
        refused = [
            one
            for one in state.handoffs.values()
            if one.result is not None
            and one.result.error_code is ErrorCode.INSUFFICIENT_CLARITY
            and one.context.session_id == session
        ]
        return "CLARITY_REFUSED" if len(refused) >= 2 else ""
    if result.state is HandoffState.TIMED_OUT:
        return "URGENT_TIMEOUT" if handoff.priority is Priority.URGENT else ""
    if result.state is HandoffState.FAILED and result.error_code in _FAILURES:
        return _FAILURES[result.error_code]
    debates = handoff.spec is not None and handoff.spec.debate is not None
    return "DEBATE_CONTESTED" if debates and result.needs_human_input else ""


class Escalations:
    """Opens these requests.

    Args:
        requests: where they go.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def ended(self, handoff: Handoff, result: HandoffResult) -> None:
        """Ask the operator about an end, where it is one of those."""
        if not handoff.proof and (code := reason_of(self._requests.state, handoff, result)):
            leave_out = () if result.output.strip() else (ACCEPT,)
            said = result.error or result.human_input_reason
            title = f"{handoff.agent}: {said}"
            tried = f"attempt {handoff.context.attempt}; task: {handoff.context.task_description}"
            asked = question_of(code, title, said, context=tried, leave_out=leave_out)
            self._requests.open(handoff, asked)

    def floor_failed(self, handoff: Handoff, back_to: str, why: str) -> None:
        """Tell that the floor went back."""
        title = f"{handoff.agent} ended; {back_to} has the floor again"
        self._requests.open(handoff, question_of("FLOOR_FAILED", title, why))

    def budget(self, share: float) -> None:
        """Tell that most of the budget, or all of it, is taken; once while that stands open."""
        if share < NOTICE_SHARE:
            return
        code = "BUDGET_100" if share >= FULL_SHARE else "BUDGET_80"
        asked = {one.reason_code for one in self._requests.state.requests.values()
                 if one.state is RequestState.OPEN}  # fmt: skip
        if code not in asked:
            said = "nothing is begun any more until it is raised" if share >= FULL_SHARE else "work goes on"
            text = f"{min(share, 9.99):.0%} of the workspace's budget is taken; {said}"
            question = question_of(code, text, text, blocking=share >= FULL_SHARE)
            self._requests.open(None, question)

    def text_for(self, request: HumanRequest, answer: Answer) -> str:
        """What an answer makes the result of the handoff that it is about.

        Raises:
            HandoffError: there is no such handoff, or no text.
        """
        handoff = self._requests.state.handoffs.get(request.handoff_id or "")
        kept = handoff.result.output if handoff is not None and handoff.result is not None else ""
        text = answer.text.strip() or kept
        if handoff is None or not text.strip():
            raise HandoffError(ErrorCode.BAD_CONTEXT, f"{request.id} leaves nothing to take")
        return text
