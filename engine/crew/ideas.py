"""Ideas that roles have parked: the operator takes one up, as work or as a goal, or drops it (spec §1.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.agents.kinds import ErrorCode
from engine.crew.parts import HandoffError
from engine.crew.state import Idea
from engine.domain import crew_commands as cc
from engine.domain.command import Receipt
from engine.domain.goal_commands import AdoptGoal
from engine.domain.text import clean_line
from engine.journal import crew_events as ce

if TYPE_CHECKING:
    from engine.crew.crew import Crew


async def settle(crew: Crew, command: cc.TakeIdea | cc.DropIdea, idea: Idea, actor: str) -> Receipt:
    """Take a parked idea up or drop it; one whose work is refused stays parked.

    Raises:
        HandoffError: it was settled before, or nobody is named who is to take it up.
        JournalError: the journal refused.
    """
    if idea.state != "parked":
        became = f": {idea.to}" if idea.to else ""
        raise HandoffError(ErrorCode.BAD_CONTEXT, f"{idea.id} was {idea.state} already{became}")
    if isinstance(command, cc.DropIdea):
        said = ce.IdeaSettled(idea=idea.id, state="dropped", reason=clean_line(command.reason))
        crew.spine.append(said, actor=actor)
        return Receipt(ok=True, message=f"{idea.id} is dropped: {clean_line(idea.text, limit=120)}")
    if command.to:
        done = await crew.carry_out(cc.Delegate(to=command.to, task=idea.text), actor)
        became = str(done.data.get("handoff", ""))
    elif command.goal_of:
        goal = AdoptGoal(agent=command.goal_of, text=idea.text)
        done = await crew.ground.submit(goal, operator=actor.removeprefix("operator:"))
        became = f"a goal of {command.goal_of}"
    else:
        raise HandoffError(ErrorCode.BAD_CONTEXT, f"{idea.id}: say who is to take it up")
    if not done.ok:
        return done
    crew.spine.append(ce.IdeaSettled(idea=idea.id, state="taken", to=became), actor=actor)
    return done.model_copy(update={"message": f"{idea.id} is taken up: {done.message}"})
