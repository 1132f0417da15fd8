"""SELECTIVE: the best of several agents does a task. ITERATE: after each result, what is next is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from engine.core.text import clean_line
from engine.crew.groups import GroupResult, HandoffGroups
from engine.crew.handoffs.contexts import HandoffDraft, operator_context
from engine.crew.handoffs.lifecycle import Handoffs
from engine.crew.handoffs.results import ResultReceiver
from engine.crew.ontology.context import ORCHESTRATOR, USER, Option
from engine.crew.ontology.kinds import AgentType, Effect, ErrorCode, HandoffMode, HandoffState, RequestKind
from engine.crew.ontology.results import HandoffResult
from engine.crew.operator_requests import ABORT, TAKEOVER, OperatorRequests, question_of
from engine.crew.ports import HandoffError, HandoffRequest, OperatorQuestion
from engine.crew.selection import CLARIFIER, Candidate, choose, graph_of, signal_in
from engine.crew.state import CrewState


@dataclass(frozen=True, slots=True)
class ScoredAgent:
    """An agent that a selection considered."""

    agent: str
    score: float
    parts: dict[str, float] = field(default_factory=dict)
    """What the score is made of, as `T`, `P`, `C`, `R`."""
    why: tuple[str, ...] = ()
    """In sentences."""
    lost: str = ""
    """Why it cannot be chosen although something speaks for it; empty for one that can."""


Scorer = Callable[[CrewState, str, str, Sequence[str], Sequence[str]], Sequence[ScoredAgent]]
"""Says of a task who could do it, the best first: by the state, the task, who would hand it over, the agents
that have finished in this conversation and those that may be chosen.
"""


def by_graph(
    state: CrewState, text: str, caller: str, previous: Sequence[str], available: Sequence[str]
) -> Sequence[ScoredAgent]:
    """Score by the selection graph; behind who can be selected come those that fit as well, with why not."""
    graph = graph_of((entry.spec for entry in state.agents.values()), state.uses)
    signal = signal_in(
        text,
        graph,
        caller=None if caller in (USER, ORCHESTRATOR) else caller,
        previous=tuple(previous),
        available=tuple(available),
    )
    selection = choose(graph, signal)
    lost = [_scored(standing.candidate, standing.reason) for standing in selection.lost]
    return [*map(_scored, selection.rows), *lost]


def _scored(candidate: Candidate, lost: str = "") -> ScoredAgent:
    parts = {"T": candidate.T, "P": candidate.P, "C": candidate.C, "R": candidate.R}
    return ScoredAgent(candidate.id, candidate.score, parts, candidate.why, lost)


TIE = 0.05
"""Two scores that differ by less go to the operator."""
FALLBACKS = 2
"""How many others are tried where one cannot begin."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Candidates in the order in which they are tried."""

    order: tuple[ScoredAgent, ...]
    lost: dict[str, str] = field(default_factory=dict)
    instead: str = ""
    """What the operator wants instead of any: `takeover` or `abort`."""
    text: str = ""


class SelectiveMode:
    """Chooses, hands over, and falls back.

    Args:
        handoffs: what it makes.
        requests: asks the operator about a tie.
        groups: the record of it.
        returns: takes a result that the operator wrote.
    """

    def __init__(
        self, handoffs: Handoffs, requests: OperatorRequests, groups: HandoffGroups, returns: ResultReceiver
    ) -> None:
        self._handoffs, self._requests, self._groups = handoffs, requests, groups
        self._returns = returns
        self.score: Scorer = by_graph

    def candidates(
        self, text: str, among: Sequence[str], caller: str, previous: Sequence[str]
    ) -> tuple[ScoredAgent, ...]:
        """Who could do a task, the best first; the clarifier where nothing speaks for anyone.

        Raises:
            HandoffError: there is no candidate.
        """
        agents = self._handoffs.state.agents
        for candidate in among:
            if candidate not in agents:
                raise HandoffError(ErrorCode.UNKNOWN_AGENT, f"no agent {candidate} is registered")
        able = [entry.spec.id for entry in agents.values() if entry.enabled and entry.spec.selectable]
        available = [agent for agent in able if agent in among] if among else able
        scored = self.score(self._handoffs.state, text, caller, previous, available)
        selection = [candidate for candidate in scored if candidate.agent in (*able, CLARIFIER)]
        clarifier = agents.get(CLARIFIER)
        if all(candidate.lost for candidate in selection) and clarifier is not None and clarifier.enabled:
            selection = [
                ScoredAgent(CLARIFIER, 0.0, why=("nothing in the task speaks for another agent",)),
                *selection,
            ]
        if all(candidate.lost for candidate in selection):
            raise HandoffError(ErrorCode.UNKNOWN_AGENT, "nothing in the task speaks for any agent")
        return tuple(selection)

    async def run(
        self, candidates: Sequence[ScoredAgent], make: Callable[[str], HandoffDraft], *, group: str = ""
    ) -> GroupResult:
        """Hand a task to the best candidate; one that cannot begin is followed by the next.

        Args:
            candidates: the candidates, the best first.
            make: the handoff to a candidate.
            group: the group's id, where it was begun.
        """
        group = group or self.begin(candidates, make)
        chosen = await self._decided(candidates, group)
        if chosen.instead:
            return await self._instead(chosen, replace(make(candidates[0].agent), group=group), candidates)
        lost = {candidate.agent: candidate.lost for candidate in candidates if candidate.lost} | chosen.lost
        name, result = "", None
        tried: list[str] = []
        for candidate in chosen.order[: FALLBACKS + 1]:
            name, result = await self._handoffs.conduct(
                replace(make(candidate.agent), group=group), retries=False
            )
            tried.append(candidate.agent)
            if not _cannot_begin(result):
                break
            lost[candidate.agent] = f"it could not begin: {result.error}"
        assert result is not None
        used = self._handoffs.state.handoffs[name].agent
        for candidate in candidates:
            if candidate.agent != used and candidate.agent not in lost:
                why = "was not tried: two fallbacks at most" if len(tried) > FALLBACKS else "scored lower"
                lost[candidate.agent] = why
        together = GroupResult(
            group, (name,), (result,), result.success, result.error_code, f"{used} was used", result.output
        )
        return self._groups.end(together, lost)

    async def _instead(
        self, chosen: Chosen, draft: HandoffDraft, candidates: Sequence[ScoredAgent]
    ) -> GroupResult:
        """The operator wrote the result, or left it."""
        if chosen.instead == TAKEOVER.id:
            name = await self._returns.by_hand(draft, chosen.text, "operator")
        else:
            name = self._groups.never(draft, "the operator left it").handoff_id
        result = await self._handoffs.outcome(name)
        lost = {candidate.agent: "the operator decided otherwise" for candidate in candidates}
        made = GroupResult(
            draft.group, (name,), (result,), result.success, result.error_code, "", result.output
        )
        return self._groups.end(made, lost)

    def begin(self, candidates: Sequence[ScoredAgent], make: Callable[[str], HandoffDraft]) -> str:
        """Write the selection down, with every candidate's score; gives its group's id."""
        drafts = [make(candidate.agent) for candidate in candidates if not candidate.lost]
        rows = [asdict(candidate) for candidate in candidates]
        return self._groups.begin(HandoffMode.SELECTIVE, drafts, min_success=1, candidates=rows)

    def clarifies(self, candidates: Sequence[ScoredAgent]) -> bool:
        """Whether the best candidate is a role, which takes the floor instead of a task."""
        entry = self._handoffs.state.agents.get(candidates[0].agent)
        return (
            entry is not None and entry.spec.type is AgentType.ROLE and entry.spec.handoff.supports.transfer
        )

    async def _decided(self, candidates: Sequence[ScoredAgent], group: str) -> Chosen:
        """Which candidate comes first: the operator says so where two are as good."""
        candidates = [candidate for candidate in candidates if not candidate.lost]
        if (
            len(candidates) < 2
            or candidates[0].score - candidates[1].score >= TIE
            or not self._groups.attended
        ):
            return Chosen(tuple(candidates))
        tied = [candidate for candidate in candidates if candidates[0].score - candidate.score < TIE]
        options = tuple(
            Option(
                id=candidate.agent,
                label=_label(candidate),
                effect=Effect.REROUTE,
                args={"agent": candidate.agent},
            )
            for candidate in tied
        )
        question = question_of(
            "SELECTION_TIE",
            f"{tied[0].agent} or {tied[1].agent}?",
            f"{group}: their scores differ by less than {TIE}.",
            first=options,
            blocking=True,
        )
        try:
            answer = await self._requests.ask(None, question)
        except HandoffError:
            return Chosen(tuple(candidates))
        if answer.option_id in (TAKEOVER.id, ABORT.id):
            return Chosen(tuple(candidates), instead=answer.option_id, text=answer.text)
        best = next((candidate for candidate in tied if candidate.agent == answer.option_id), candidates[0])
        lost = {candidate.agent: "you chose another one" for candidate in tied if candidate is not best}
        return Chosen((best, *(candidate for candidate in candidates if candidate is not best)), lost)


def _cannot_begin(result: HandoffResult) -> bool:
    return result.state is HandoffState.REJECTED or result.error_code is ErrorCode.TOOL_UNAVAILABLE


def _label(candidate: ScoredAgent) -> str:
    parts = ", ".join(f"{name} {value:.2f}" for name, value in candidate.parts.items())
    return f"{candidate.agent} {candidate.score:.4f}" + (f" ({parts})" if parts else "")


MOST = 5
"""Handoffs of one iteration."""


async def iterate(
    first: HandoffDraft,
    conduct: Callable[[HandoffDraft], Awaitable[HandoffResult]],
    decider: OperatorDecider,
    *,
    most: int = MOST,
) -> tuple[HandoffResult, ...]:
    """Hand over, ask the caller for the next, and so on; all results, oldest first.

    Args:
        first: the first handoff.
        conduct: carries one out.
        decider: says what is next.
        most: handoffs at most.
    """
    results: list[HandoffResult] = []
    draft: HandoffDraft | None = first
    while draft is not None:
        results.append(await conduct(draft))
        draft = await decider.next(tuple(results)) if len(results) < most else None
    return tuple(results)


DONE = Option(id="done", label="That is all", effect=Effect.ACCEPT)
AGAIN = Option(
    id="again", label="The same agent once more; your text is its task", effect=Effect.RESUME, words="may"
)


class OperatorDecider:
    """Asks the operator what is next.

    Args:
        requests: how.
        handoffs: what the results are of.
        first: the handoff that it began with.
        attended: whether an operator is there; else one result is all.
    """

    def __init__(
        self, requests: OperatorRequests, handoffs: Handoffs, first: HandoffDraft, *, attended: bool
    ) -> None:
        self._requests, self._handoffs, self._first = requests, handoffs, first
        self._attended = attended
        self.last = first.context.handoff_id

    async def next(self, results: tuple[HandoffResult, ...]) -> HandoffDraft | None:
        """The next handoff; None when it is done."""
        if not self._attended:
            return None
        last = results[-1]
        suggested = tuple(
            Option(id=agent, label=f"Hand it to {agent}", effect=Effect.REROUTE, args={"agent": agent})
            for agent in last.suggested_next_agents
        )
        question = OperatorQuestion(
            RequestKind.DECISION,
            "ITERATE",
            f"{last.from_agent} is back; what is next?",
            clean_line(last.output or last.error or "", limit=1_000),
            options=(DONE, AGAIN, *suggested),
        )
        try:
            answer = await self._requests.ask(self._handoffs.state.handoffs[self.last], question)
        except HandoffError:
            return None
        if answer.option_id in (DONE.id, None) and not (answer.option_id is None and answer.text.strip()):
            return None
        like = self._first.context
        to = answer.option_id if answer.option_id in last.suggested_next_agents else last.from_agent
        ask = HandoffRequest(to or last.from_agent, answer.text.strip() or like.task_description,
                  like.expected_output, like.focus_areas, like.ignore_areas, like.priority,
                  like.timeout_seconds)  # fmt: skip
        context = operator_context(
            self._handoffs.state, self._handoffs.setting, ask,
            clarity=like.problem_clarity.to_dict(), returns=like.return_behavior,
        )  # fmt: skip
        known = tuple(agent.to_analysis() for agent in results if agent.success)
        context = context.model_copy(update={"previous_analyses": (*like.previous_analyses, *known)})
        return HandoffDraft(context, actor=self._first.actor)
