"""A reasoner's whole mind as data, and a mind that goes on from it as the other would have.

It is a cache of what the events of a stream give, so it is taken only where it is exact: behind an event,
with nothing under way that no event says yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.bdi.encoding import SavedStateError
from engine.bdi.parser import parse_literal
from engine.bdi.printing import text_of
from engine.bdi.problems import ProgramError
from engine.domain.reasoning import MindBreakpoint
from engine.generation.pgp.inventions import with_inventions
from engine.reasoner.generation import inventions_of

if TYPE_CHECKING:
    from engine.reasoner.reasoner import Reasoner

FORMAT = 1
"""Raised whenever the data change shape or a program would go on otherwise; older data are then ignored."""

Data = dict[str, Any]


def save(mind: Reasoner) -> Data | None:
    """The mind as it is now, ready for JSON; None where that cannot be said exactly."""
    agent, procedure = mind.agent, mind.making.procedure
    if mind.run is not None or agent.beliefs.touched or _in_a_for(mind):
        return None
    if procedure is not None and procedure.generated != mind.making.shown:
        return None
    return {
        "agent": agent.save(),
        "now": mind.now,
        "at": mind.at,
        "tracing": mind.tracing,
        "requests": mind.requests,
        "tags": list(mind.tags.items()),
        "facts": mind.facts,
        "world": [text_of(one) for one in mind.world],
        "visible": sorted(mind.visible),
        "breakpoints": [[one.id, one.on, one.pattern, one.enabled] for one in mind.watch.known],
        "begun": mind.making.begun,
        "inventions": [list(made) for made in mind.making.inventions],
        "procedure": None if procedure is None else procedure.save(),
        "questions": {
            generation: procedure.question_data(question)
            for generation, question in mind.making.questions.items()
            if procedure is not None
        },
    }


def _in_a_for(mind: Reasoner) -> bool:
    """Whether a `for` waits for its next answer, which may depend on what has changed since it began."""
    return any(
        loop.answers is not None
        for intention in mind.agent.intentions.values()
        for frame in intention.frames
        for loop in frame.loops
    )


def restore(mind: Reasoner, data: Data) -> None:
    """Give a new reasoner of the same program a saved mind.

    Raises:
        SavedStateError: the data are no saved mind, or that of another program.
    """
    try:
        _restore(mind, data)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, ProgramError) as error:
        raise SavedStateError(f"the saved mind is damaged: {error!r}") from error


def _restore(mind: Reasoner, data: Data) -> None:
    agent, procedure = mind.agent, mind.making.procedure
    agent.restore(data["agent"])
    mind.now, mind.at, mind.tracing = float(data["now"]), str(data["at"]), bool(data["tracing"])
    mind.requests = {action: int(number) for action, number in data["requests"].items()}
    mind.tags = {int(intention): str(goal) for intention, goal in data["tags"]}
    mind.facts = dict(data["facts"])
    mind.world = tuple(map(parse_literal, data["world"]))
    mind.visible = set(map(int, data["visible"]))
    for one in data["breakpoints"]:
        mind.watch.change(MindBreakpoint(*one), cleared=False)
    mind.making.begun = int(data["begun"])
    mind.making.inventions = [(kind, template, purpose) for kind, template, purpose in data["inventions"]]
    mind.making.known = with_inventions(mind.making.known, inventions_of(mind.making.inventions))
    if procedure is not None:
        procedure.restore(data["procedure"])
        mind.making.shown = procedure.generated
        mind.making.questions = {
            generation: procedure.question_of(one) for generation, one in data["questions"].items()
        }
    agent.beliefs.touched = {}
    mind.held = {fact.plain for fact in agent.beliefs}
    mind.run = None
