"""How clear a problem is: what, who and success (ontology spec §1.2).

`overall_clarity` and `is_ready_for_analysis` are the seed's, literally. Whether an agent admits a problem is
asked of what that agent requires (`engine.agents.spec.Receives.refusal`), because the mean hides a hole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from engine.agents.kinds import ClarityLevel
from engine.agents.values import Lines, Share, Value

Slot = Literal["what", "who", "success"]
SLOTS: tuple[Slot, ...] = ("what", "who", "success")
READY = 0.6
"""Overall clarity from which the seed calls a problem ready."""
PROPOSED = 0.8
"""The score of a text that comes without one, before it is capped."""
SLOT_LEAST = 0.3
"""Clarity that a required slot has at least."""

_Text = Annotated[str, Field(max_length=8_000)] | None


class ProblemClarity(Value):
    """What the problem is, who has it, what success looks like, and how clear each of these is."""

    what: _Text = None
    who: _Text = None
    success: _Text = None
    what_clarity: Share = 0.0
    who_clarity: Share = 0.0
    success_clarity: Share = 0.0
    assumptions: Lines = ()
    open_questions: Lines = ()
    confirmed: frozenset[Slot] = frozenset()
    """Slots to which the operator said yes."""
    evidence: dict[Slot, tuple[str, ...]] = Field(default_factory=dict)
    """Ids of messages that say so, by slot."""

    @model_validator(mode="after")
    def _blank_is_unclear(self) -> Self:
        for slot in SLOTS:
            if not (self.text(slot) or "").strip() and self.score(slot):
                # The model is frozen for everybody else.
                object.__setattr__(self, f"{slot}_clarity", 0.0)
        return self

    @property
    def overall_clarity(self) -> float:
        """The mean of the three."""
        return (self.what_clarity + self.who_clarity + self.success_clarity) / 3

    @property
    def is_ready_for_analysis(self) -> bool:
        """The seed's readiness: a mean of at least 0.6."""
        # The mean of 1.0, 0.8 and 0.0 is 0.6 and not a rounding error below it.
        return round(self.overall_clarity, 9) >= READY

    @property
    def clarity_level(self) -> ClarityLevel:
        """The overall clarity in a word."""
        overall = round(self.overall_clarity, 9)
        if overall < 0.3:
            return ClarityLevel.UNCLEAR
        if overall < READY:
            return ClarityLevel.PARTIAL
        return ClarityLevel.MOSTLY_CLEAR if overall < 0.85 else ClarityLevel.CLEAR

    def text(self, slot: Slot) -> str | None:
        """The words of a slot."""
        return {"what": self.what, "who": self.who, "success": self.success}[slot]

    def score(self, slot: Slot) -> float:
        """The clarity of a slot."""
        return {"what": self.what_clarity, "who": self.who_clarity, "success": self.success_clarity}[slot]

    def updated(self, slot: Slot, text: str, score: float, confirmed: bool = False) -> ProblemClarity:
        """With other words in a slot; the score is capped by what the words can bear."""
        given = self.model_dump()
        said = self.confirmed | {slot} if confirmed else self.confirmed - {slot}
        given |= {slot: text, f"{slot}_clarity": capped(slot, text, score, confirmed), "confirmed": said}
        return ProblemClarity.read(given)

    def to_dict(self) -> dict[str, Any]:
        """Its JSON."""
        return self.model_dump(mode="json")


def clarity_from(given: Mapping[str, Any] | ProblemClarity | None) -> ProblemClarity:
    """The clarity of what somebody gave; words without a score get a proposed one, capped.

    Raises:
        InvalidError: it is none.
    """
    if isinstance(given, ProblemClarity):
        return given
    said = dict(given or {})
    for slot in SLOTS:
        text = said.get(slot)
        if isinstance(text, str) and text.strip() and f"{slot}_clarity" not in said:
            said[f"{slot}_clarity"] = capped(slot, text, PROPOSED, slot in (said.get("confirmed") or ()))
    return ProblemClarity.read(said, "problem clarity")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP_WORDS = _set(
    """a an the it its is are was be been to of for and or in on at by with from as that this these
    those we our
    us i my me you your they their them he she make makes making get gets getting do does want wants
    need needs have has should would could can will so some any very really just"""
)
_GENERIC: dict[Slot, frozenset[str]] = {
    "what": _set(
        """better improve improves improved improvement improvements optimise optimize issue issues problem
        problems thing things"""
    ),
    "who": _set("everyone everybody user users people customer customers all anyone"),
    "success": _set("better faster more good happy success successful"),
}
_MEASURABLE = re.compile(
    r"\d|%|\b(zero|no longer|at least|at most|under|within|pass(es)?)\b|"
    r"\bby (the )?(end|next|tomorrow|tonight|noon|january|february|march|april|may|june|july|august|"
    r"september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*", re.UNICODE)


def cap(slot: Slot, text: str, confirmed: bool) -> float:
    """The highest clarity that these words can bear: the least of all caps that apply."""
    words = [word.casefold() for word in _WORD.findall(text)]
    if not text.strip():
        return 0.0
    caps = [1.0 if confirmed else 0.85]
    telling = [word for word in words if word not in _STOP_WORDS]
    if all(word in _GENERIC[slot] for word in telling):
        caps.append(0.4)
    if slot == "success" and not _MEASURABLE.search(text):
        caps.append(0.5)
    if len(words) < 3:
        caps.append(0.6)
    return min(caps)


def capped(slot: Slot, text: str, proposed: float, confirmed: bool = False) -> float:
    """The clarity of a slot: what was proposed, and no more than its words can bear."""
    return min(proposed, cap(slot, text, confirmed))
