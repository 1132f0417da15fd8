"""SELECTIVE: the best of several does it (ontology spec §1.11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from engine.agents.human import Option
from engine.agents.kinds import AgentType, Effect, ErrorCode, HandoffMode, HandoffState
from engine.agents.result import HandoffResult
from engine.crew.contexts import Wanted
from engine.crew.escalating import ABORT, TAKEOVER, question_of
from engine.crew.floor import CLARIFIER
from engine.crew.groups import Groups, Together
from engine.crew.handoffs import Handoffs
from engine.crew.parts import HandoffError, Scored, Select
from engine.crew.requests import Requests
from engine.crew.returning import Returns

TIE = 0.05
"""Two scores that differ by less go to the operator."""
FALLBACKS = 2
"""How many others are tried where one cannot begin."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Candidates in the order in which they are tried."""

    order: tuple[Scored, ...]
    lost: dict[str, str] = field(default_factory=dict)
    instead: str = ""
    """What the operator wants instead of any: `takeover` or `abort`."""
    text: str = ""


class Selective:
    """Chooses, hands over, and falls back.

    Args:
        handoffs: what it makes.
        requests: asks the operator about a tie.
        groups: the record of it.
        returns: takes a result that the operator wrote.
    """

    def __init__(self, handoffs: Handoffs, requests: Requests, groups: Groups, returns: Returns) -> None:
        self._handoffs, self._requests, self._groups = handoffs, requests, groups
        self._returns = returns
        self.select: Select | None = None
        """The selection; None where there is none: then who is named first is tried first."""

    async def candidates(
        self, text: str, among: Sequence[str], caller: str, previous: Sequence[str]
    ) -> tuple[Scored, ...]:
        """Who could do a task, the best first; the clarifier where nothing speaks for anyone.

        Raises:
            HandoffError: there is nobody.
        """
        agents = self._handoffs.state.agents
        for one in among:
            if one not in agents:
                raise HandoffError(ErrorCode.UNKNOWN_AGENT, f"no agent {one} is registered")
        able = [one.spec.id for one in agents.values() if one.enabled and one.spec.selectable]
        available = [one for one in able if one in among] if among else able
        found: Sequence[Scored] = ()
        if self.select is not None:
            found = await self.select.candidates(text, caller=caller, previous=previous, available=available)
        elif among:
            found = [Scored(one, 0.0, why=("it was named",)) for one in among if one in available]
        found = [one for one in found if one.agent in able or one.agent == CLARIFIER]
        if all(one.lost for one in found) and CLARIFIER in agents and agents[CLARIFIER].enabled:
            found = [Scored(CLARIFIER, 0.0, why=("nothing in the task speaks for another agent",)), *found]
        if all(one.lost for one in found):
            raise HandoffError(ErrorCode.UNKNOWN_AGENT, "nothing in the task speaks for any agent")
        return tuple(found)

    async def run(
        self, found: Sequence[Scored], make: Callable[[str], Wanted], *, group: str = ""
    ) -> Together:
        """Hand a task to the best candidate; one that cannot begin is followed by the next.

        Args:
            found: the candidates, the best first.
            make: the handoff to a candidate.
            group: the group's id, where it was begun.
        """
        group = group or self.begin(found, make)
        chosen = await self._decided(found, group)
        if chosen.instead:
            return await self._instead(chosen, replace(make(found[0].agent), group=group), found)
        lost = {one.agent: one.lost for one in found if one.lost} | chosen.lost
        name, result = "", None
        tried: list[str] = []
        for one in chosen.order[: FALLBACKS + 1]:
            name, result = await self._handoffs.conduct(replace(make(one.agent), group=group), retries=False)
            tried.append(one.agent)
            if not _cannot_begin(result):
                break
            lost[one.agent] = f"it could not begin: {result.error}"
        assert result is not None
        used = self._handoffs.state.handoffs[name].agent
        for one in found:
            if one.agent != used and one.agent not in lost:
                why = "was not tried: two fallbacks at most" if len(tried) > FALLBACKS else "scored lower"
                lost[one.agent] = why
        together = Together(
            group, (name,), (result,), result.success, result.error_code, f"{used} was used", result.output
        )
        return self._groups.end(together, lost)

    async def _instead(self, chosen: Chosen, wanted: Wanted, found: Sequence[Scored]) -> Together:
        """The operator wrote the result, or left it."""
        if chosen.instead == TAKEOVER.id:
            name = await self._returns.by_hand(wanted, chosen.text, "operator")
        else:
            name = self._groups.never(wanted, "the operator left it").handoff_id
        result = await self._handoffs.outcome(name)
        lost = {one.agent: "the operator decided otherwise" for one in found}
        made = Together(
            wanted.group, (name,), (result,), result.success, result.error_code, "", result.output
        )
        return self._groups.end(made, lost)

    def begin(self, found: Sequence[Scored], make: Callable[[str], Wanted]) -> str:
        """Write the selection down, with every candidate's score; gives its group's id."""
        wanted = [make(one.agent) for one in found if not one.lost]
        rows = [asdict(one) for one in found]
        return self._groups.begin(HandoffMode.SELECTIVE, wanted, min_success=1, candidates=rows)

    def clarifies(self, found: Sequence[Scored]) -> bool:
        """Whether the best candidate is a role, which takes the floor instead of a task."""
        entry = self._handoffs.state.agents.get(found[0].agent)
        return (
            entry is not None and entry.spec.type is AgentType.ROLE and entry.spec.handoff.supports.transfer
        )

    async def _decided(self, found: Sequence[Scored], group: str) -> Chosen:
        """Which candidate comes first: the operator says so where two are as good."""
        found = [one for one in found if not one.lost]
        if len(found) < 2 or found[0].score - found[1].score >= TIE or not self._groups.attended:
            return Chosen(tuple(found))
        if self.select is None:
            return Chosen(tuple(found))
        tied = [one for one in found if found[0].score - one.score < TIE]
        options = tuple(
            Option(id=one.agent, label=_label(one), effect=Effect.REROUTE, args={"agent": one.agent})
            for one in tied
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
            return Chosen(tuple(found))
        if answer.option_id in (TAKEOVER.id, ABORT.id):
            return Chosen(tuple(found), instead=answer.option_id, text=answer.text)
        best = next((one for one in tied if one.agent == answer.option_id), found[0])
        lost = {one.agent: "you chose another one" for one in tied if one is not best}
        return Chosen((best, *(one for one in found if one is not best)), lost)


def _cannot_begin(result: HandoffResult) -> bool:
    return result.state is HandoffState.REJECTED or result.error_code is ErrorCode.TOOL_UNAVAILABLE


def _label(one: Scored) -> str:
    parts = ", ".join(f"{name} {value:.2f}" for name, value in one.parts.items())
    return f"{one.agent} {one.score:.4f}" + (f" ({parts})" if parts else "")
