"""Bringing answers together: one text that names every source and every member that is missing.

The internal agent `synthesizer` writes it; whether it names them is checked in code (ontology spec §1.10).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.agents.context import HandoffContext
from engine.agents.kinds import HandoffMode
from engine.agents.result import HandoffResult
from engine.crew.clocks import moment
from engine.crew.contexts import Wanted, from_user
from engine.crew.handoffs import Handoffs
from engine.crew.parts import Ask
from engine.crew.state import CrewState

SYNTHESIZER = "synthesizer"
TRIES = 2
"""The first text, and one that is told what the first left out."""


@dataclass(frozen=True, slots=True)
class Synthesis:
    """One text made of several."""

    output: str
    handoff: str = ""
    """The handoff that wrote it; empty where it was put together without a model."""
    warnings: tuple[str, ...] = ()


def unnamed(text: str, wanted: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """The agents that a text does not name, by id or by name.

    Args:
        text: the text.
        wanted: ids of agents.
        names: their names by id.
    """
    return tuple(one for one in wanted if not any(_says(text, word) for word in (one, names.get(one, one))))


def joined(results: Sequence[HandoffResult], missing: Sequence[str], names: dict[str, str]) -> str:
    """The answers one after the other, each under its agent's name, with what is missing."""
    parts = [
        f"## {names.get(one.from_agent, one.from_agent)} ({one.from_agent})\n\n{one.output}"
        for one in results
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
    names = {one: entry.spec.name for one, entry in state.agents.items()}
    if SYNTHESIZER not in state.agents:
        warning = f"no {SYNTHESIZER} is registered; the answers stand one after the other"
        return Synthesis(joined(results, missing, names), warnings=(warning,))
    wanted = (*(one.from_agent for one in results), *missing)
    left_out: tuple[str, ...] = ()
    for _ in range(TRIES):
        context = _context(handoffs, results, missing, like, left_out)
        name, result = await handoffs.conduct(Wanted(context, actor=actor))
        if not result.success:
            warning = f"{SYNTHESIZER} came to nothing ({result.error}); the answers stand one after the other"
            return Synthesis(joined(results, missing, names), warnings=(warning,))
        left_out = unnamed(result.output, wanted, names)
        if not left_out:
            return Synthesis(result.output, name)
    told = "Not named above: " + ", ".join(
        f"{one} (gave nothing)" if one in missing else one for one in left_out
    )
    return Synthesis(f"{result.output}\n\n{told}.", name, (f"the synthesis left out {', '.join(left_out)}",))


def _context(
    handoffs: Handoffs,
    results: Sequence[HandoffResult],
    missing: Sequence[str],
    like: HandoffContext,
    left_out: Sequence[str],
) -> HandoffContext:
    state: CrewState = handoffs.state
    sources = ", ".join(one.from_agent for one in results)
    task = (
        f"Bring together what {sources} found on: {like.task_description}\nName every one of them by its id."
    )
    if missing:
        task += f"\nSay that these gave nothing: {', '.join(missing)}."
    if left_out:
        task += f"\nYour text before did not name: {', '.join(left_out)}."
    at = moment(handoffs.clock)
    entries = [(one, state.agents.get(one.from_agent)) for one in results]
    analyses = tuple(
        one.to_analysis(entry.spec.name if entry is not None else "", at) for one, entry in entries
    )
    ask = Ask(
        SYNTHESIZER,
        task,
        priority=like.priority,
        metadata={"sources": [one.from_agent for one in results], "missing": list(missing)},
    )
    made = from_user(
        state, handoffs.setting, ask, clarity=like.problem_clarity.to_dict(), mode=HandoffMode.SEQUENTIAL
    )
    return made.model_copy(update={"previous_analyses": analyses, "conversation": like.conversation})


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None
