"""Answers that were paid for, kept so that a campaign that goes on after any end does not pay again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from engine.domain.improvement import Proposal
from engine.mastermind.parts import NothingProposed


@dataclass(frozen=True, slots=True)
class _Answer:
    proposals: tuple[Proposal, ...] = ()
    nothing: str = ""


_ANSWER = TypeAdapter(_Answer)


def remembered(proposals: Sequence[Proposal], nothing: str) -> bytes:
    """An answer as bytes: what was proposed, or why nothing was."""
    return _ANSWER.dump_json(_Answer(tuple(proposals), nothing))


def recalled(content: bytes, prepaid: float) -> tuple[Proposal, ...]:
    """An answer again; it costs what was paid for it and is in no candidate yet.

    Raises:
        NothingProposed: that was the answer.
        ValueError: the content is no answer.
    """
    answer = _ANSWER.validate_json(content)
    if not answer.proposals:
        raise NothingProposed(f"{answer.nothing} (answered before this campaign was cut off)", prepaid)
    found = []
    for one in answer.proposals:
        found.append(replace(one, cost_usd=min(one.cost_usd, prepaid)))
        prepaid -= found[-1].cost_usd
    return tuple(found)
