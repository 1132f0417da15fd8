"""What a command to the crew would do, told before it is done; of a debate its calls and their cost.

Source: ontology spec §1.11 (10): the budget of a debate is shown before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from app.preview import VALUE_LIMIT, Preview, fields_of
from app.verb import Verb
from engine.domain import crew_commands as cc
from engine.domain.text import clean_line

if TYPE_CHECKING:
    from engine.agents.spec import DebateSpec
    from engine.crew.state import CrewState

BEGINS_WORK = (cc.Delegate, cc.Sequence, cc.Parallel, cc.Select, cc.Debate, cc.RetryHandoff)
_BACK = {
    "crew_transfer": "yes: take back",
    "crew_pause": "yes: resume HANDOFF",
    "crew_resume": "yes: pause HANDOFF",
    "crew_priority": "yes: set it again",
    "crew_step_mode": "yes: set it again",
    "crew_enable": "yes: agent_enable, agent_disable",
    "crew_cancel": "no: retry HANDOFF hands the same over anew",
    "crew_take_idea": "cancel HANDOFF, or drop the goal, ends it; the idea stays on record",
    "crew_drop_idea": "no: it stays on record, and is not listed first any more",
}
DEBATER = "decision-debate"
"""Who debates where neither sides nor an agent are named."""
ROUNDS = 2
TURN_TOKENS_A_WORD = 2.8
"""Tokens of a turn by its words: its claims, evidence and ids as JSON take about twice what they say."""
PROMPT_TOKENS, JUDGED_TOKENS = 2_000, 600
"""Tokens of a prompt before anything was said, and of a judgement; rough, for an estimate only."""


def of_crew(
    line: str,
    verb: Verb,
    command: cc.ForCrew,
    *,
    model: str,
    crew: CrewState | None,
    said: Mapping[str, str],
) -> Preview:
    """What a command to the crew would do.

    Args:
        line: as it would be entered.
        verb: that it begins with.
        command: what it means.
        model: the model's name; empty where there is none.
        crew: what the crew knows; None where it is not open.
        said: what is known besides of fields of the command, by their names.
    """
    facts = [(name, said.get(name, value)) for name, value in fields_of(command, "")]
    if isinstance(command, cc.Debate):
        facts += _of_debate(command, model, crew)
    if isinstance(command, cc.TakeIdea | cc.DropIdea) and crew is not None and command.idea in crew.ideas:
        facts.append(("text", clean_line(crew.ideas[command.idea].text, limit=VALUE_LIMIT)))
    if isinstance(command, BEGINS_WORK) or (isinstance(command, cc.TakeIdea) and command.to):
        facts.append(("model", model or "none is set; only what can be computed is done"))
        facts.append(("asks", "where an agent needs you; answer REQUEST, or F"))
    back = "cancel HANDOFF ends it with all that it handed over"
    facts.append(("undo", back if isinstance(command, BEGINS_WORK) else _BACK.get(command.do, "no")))
    return Preview(line, verb.help, tuple(facts))


def _of_debate(command: cc.Debate, model: str, crew: CrewState | None) -> list[tuple[str, str]]:
    """Who argues how often, in how many calls, for about how much."""
    debate = _debate(command, crew)
    if debate is None:
        return [("cost", "one call for each side and each round with the openings, and two for the judge")]
    sides = ", ".join(f"{side.label} {side.agent_id}" for side in debate.sides)
    turns = f"{len(debate.sides)} sides, {1 + debate.rounds} turns each, and 2 passes of the judge"
    return [
        ("sides", clean_line(f"{sides}; judged by {debate.judge_agent}", limit=VALUE_LIMIT)),
        ("cost", f"{debate.calls} model calls at most, without repairs: {turns}"),
        ("estimate", _estimate(debate, model, crew)),
    ]


def _debate(command: cc.Debate, crew: CrewState | None) -> DebateSpec | None:
    """The debate that a line asks for; None where nobody knows it here."""
    from engine.agents.spec import DebateSpec, Side

    if command.pro:
        sides = [("for", command.pro), ("against", command.con)]
        return DebateSpec(
            sides=tuple(Side(label=label, agent_id=agent, stance=label) for label, agent in sides),
            judge_agent=command.judge or "judge",
            rounds=command.rounds or ROUNDS,
        )
    entry = crew.agents.get(command.agent_id or DEBATER) if crew is not None else None
    debate = entry.spec.debate if entry is not None else None
    if debate is None or command.rounds is None:
        return debate
    return debate.model_copy(update={"rounds": command.rounds})


def _estimate(debate: DebateSpec, model: str, crew: CrewState | None) -> str:
    """About what it costs: as calls of earlier debates did, else by the model's prices."""
    if not model:
        return "nothing: there is no model, and a debate needs one"
    calls, usd = _taken(crew) if crew is not None else (0, 0.0)
    if calls:
        about = usd / calls * debate.calls
        return f"about ${about:.2f}: the {calls} calls of earlier debates took ${usd:.2f}"
    from engine.models.capabilities import shipped_models

    price = shipped_models().of(model).price(PROMPT_TOKENS)
    if price is None:
        return f"unknown: nobody knows the price of {clean_line(model, limit=80)}"
    read, written = _tokens(debate)
    cost = (read * price.input + written * price.output) / Decimal(1_000_000)
    how = f"at {debate.max_words} words a turn: about {read:,} tokens read and {written:,} written"
    return f"about ${cost:.2f} {how}"


def _taken(crew: CrewState) -> tuple[int, float]:
    """Calls and US dollars of all turns and judgements so far."""
    used = [
        one.result.usage
        for one in crew.handoffs.values()
        if one.result is not None and isinstance(one.context.metadata.get("debate"), dict)
    ]
    return sum(one.calls for one in used), sum(one.usd for one in used)


def _tokens(debate: DebateSpec) -> tuple[int, int]:
    """Tokens that are read and written: each turn reads all turns of the rounds before, the judge all."""
    turn, sides = round(debate.max_words * TURN_TOKENS_A_WORD), len(debate.sides)
    turns = sides * (1 + debate.rounds)
    read = sum(sides * (PROMPT_TOKENS + done * sides * turn) for done in range(1 + debate.rounds))
    return read + 2 * (PROMPT_TOKENS + turns * turn), turns * turn + 2 * JUDGED_TOKENS
