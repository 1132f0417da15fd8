"""The phases of the agent that builds agents: computed, and decided on by the operator (ontology spec §2)."""

from __future__ import annotations

from engine.agents.human import Option
from engine.agents.kinds import Effect, RequestKind
from engine.crew.parts import Built, HandoffError, Question
from engine.crew.tool.work import Work
from engine.domain.running import DECIDED
from engine.domain.text import clean_line

ASKED_MOST = 5
"""Times that one phase asks the operator."""
ABORT = Option(id="abort", label="build nothing", effect=Effect.ABORT)


async def built(work: Work, number: int) -> Built:
    """Go on with the build up to a phase; what it cannot decide is asked of the operator.

    Args:
        work: the call; what was decided is kept with the handoff.
        number: of the phase, from 1.

    Raises:
        HandoffError: the question is dismissed.
    """
    now = work.desk.handoff_of(work.run)
    decided = dict((now or work.handoff).progress.get(DECIDED) or {})
    for _ in range(ASKED_MOST):
        try:
            found = await work.desk.build(work.run, number, decided)
        except HandoffError as error:
            return Built(False, error.message)
        if not found.asks:
            return found
        answer = await work.desk.ask(work.run, _question(found))
        said = answer.option_id or answer.text.strip()
        if said == ABORT.id:
            return found
        if found.about == "mcp" and said == "retry":
            decided["tried"] = str(int(decided.get("tried", "0")) + 1)
        else:
            decided[found.about] = said
        await work.keep("builder.phase", {DECIDED: decided}, clean_line(f"{found.about}: {said}", limit=200))
    return found


def _question(found: Built) -> Question:
    options = tuple(
        Option(id=one, label=one, effect=Effect.RESUME) for one in found.options if one != ABORT.id
    )
    return Question(
        RequestKind.DECISION,
        "builder",
        clean_line(found.asks, limit=80),
        found.asks,
        context=found.said,
        options=(*options, ABORT),
        allow_free_text=not options,
    )
