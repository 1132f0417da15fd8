"""What the selection graph holds and is asked, as plain values that are checked when they are made.

Source: ontology spec §2.6 (node and edges), §3.2 (inputs of a selection).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from engine.agents.kinds import AgentType
from engine.agents.values import AGENT_ID
from engine.selection.errors import GraphInputError
from engine.selection.normalising import normalise, normalised

Rel = Literal["CHAINS_TO", "GOOD_FOR", "USED_BY"]
Policy = Literal["corrected", "literal"]

RELS: tuple[Rel, ...] = get_args(Rel)
POLICIES: tuple[Policy, ...] = get_args(Policy)
TYPES = tuple(kind.value for kind in AgentType)
ANYONE = "*"
MOST_TRIGGERS = 20
"""Of one agent."""
MOST_ROWS = 1_000
"""Rows that can be asked for."""
MOST_HOPS = 16
TEXT_LIMIT = 20_000

_VALUE_OF: Mapping[Rel, str] = {"CHAINS_TO": "weight", "GOOD_FOR": "confidence", "USED_BY": "success"}
_DEFAULT: Mapping[Rel, float | None] = {"CHAINS_TO": 0.5, "GOOD_FOR": 1.0, "USED_BY": None}


class Position(NamedTuple):
    """The last event of a stream that the graph has taken in."""

    version: int = 0
    """0 for none."""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """An agent that can be selected.

    Raises:
        GraphInputError: a field does not fit.
    """

    id: str
    """Lower-case letters, digits and hyphens, at most 64."""
    name: str
    type: str
    triggers: tuple[str, ...] = ()
    """Normalised, at most 20."""
    problem_types: tuple[str, ...] = ()
    """Normalised; how sure an agent is of each stands in its GOOD_FOR edges."""
    version: str = "1.0.0"
    updated_at: str = ""
    """Time, ISO 8601."""
    description: str = ""
    enabled: bool = True
    callers: tuple[str, ...] = (ANYONE,)
    """Ids of agents that may call it; `*` for all."""

    def __post_init__(self) -> None:
        checked_id(self.id, "id")
        for field in ("name", "version", "updated_at", "description"):
            _checked_text(getattr(self, field), field)
        if not self.name.strip():
            raise GraphInputError("name", "is blank; give the agent a name.")
        if self.type not in TYPES:
            raise GraphInputError("type", f"{self.type!r} is none; take one of {', '.join(TYPES)}.")
        if not isinstance(self.enabled, bool):
            raise GraphInputError("enabled", f"{self.enabled!r} is neither true nor false.")
        for field in ("triggers", "problem_types"):
            object.__setattr__(self, field, normalised(_checked_words(getattr(self, field), field)))
        if len(self.triggers) > MOST_TRIGGERS:
            raise GraphInputError("triggers", f"are {len(self.triggers)}; keep at most {MOST_TRIGGERS}.")
        object.__setattr__(self, "callers", tuple(dict.fromkeys(_checked_words(self.callers, "callers"))))


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A relation: between two agents, to a problem type, or to a session."""

    src: str
    rel: Rel
    dst: str
    """An agent's id, a normalised problem type, or a session's id."""
    value: float
    """Weight (0, 1], confidence [0, 1], or success as 1 or 0."""
    source: str = ""
    """Who declared it: two agents may each declare the chain between them."""

    @property
    def props(self) -> dict[str, float | bool]:
        """The value by its name: `weight`, `confidence` or `success`."""
        return {_VALUE_OF[self.rel]: bool(self.value) if self.rel == "USED_BY" else self.value}


def edge_of(src: str, rel: str, dst: str, props: Mapping[str, Any]) -> Edge:
    """An edge out of what a caller gave.

    Args:
        src: the agent's id.
        rel: CHAINS_TO, GOOD_FOR or USED_BY.
        dst: an agent's id, a problem type or a session's id.
        props: `weight` (0.5 unless given), `confidence` (1 unless given) or `success`; `source` for a chain.

    Raises:
        GraphInputError: something does not fit.
    """
    known = checked_rel(rel)
    checked_id(src, "src")
    if known == "CHAINS_TO":
        checked_id(dst, "dst")
        if src == dst:
            raise GraphInputError("dst", f"{src} cannot be chained to itself; leave the edge out.")
    else:
        dst = named(known, dst)
    name = _VALUE_OF[known]
    allowed = {name, "source"} if known == "CHAINS_TO" else {name}
    if unknown := sorted(set(props) - allowed):
        raise GraphInputError(unknown[0], f"is no property of {known}; it has {', '.join(sorted(allowed))}.")
    source = _checked_text(props.get("source", ""), "source")
    return Edge(src, known, dst, _value_of(known, name, props.get(name, _DEFAULT[known])), source)


def named(rel: Rel, dst: str) -> str:
    """The far end of an edge as it is stored: problem types are normalised.

    Raises:
        GraphInputError: it is blank or no text.
    """
    _checked_text(dst, "dst")
    dst = normalise(dst) if rel == "GOOD_FOR" else dst
    if not dst.strip():
        raise GraphInputError("dst", f"is blank; name what {rel} leads to.")
    return dst


def _value_of(rel: Rel, name: str, value: object) -> float:
    if rel == "USED_BY":
        if not isinstance(value, bool):
            raise GraphInputError(
                name, f"{value!r} is neither true nor false; say whether the use succeeded."
            )
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise GraphInputError(name, f"{value!r} is no number; give one between 0 and 1.")
    if not 0 <= value <= 1 or (rel == "CHAINS_TO" and value == 0):
        span = "above 0, up to 1" if rel == "CHAINS_TO" else "from 0 to 1"
        raise GraphInputError(name, f"{value!r} is out of range; give one {span}.")
    return float(value)


@dataclass(frozen=True)
class Signal:
    """What a selection is asked.

    Raises:
        GraphInputError: a field does not fit.
    """

    triggers: tuple[str, ...] = ()
    """As they were said; they are normalised for comparing, save under the literal policy."""
    problem_types: tuple[str, ...] = ()
    previous: tuple[str, ...] = ()
    """Ids of agents that have finished, each once."""
    exclude: tuple[str, ...] = ()
    caller: str | None = None
    """The agent that would hand off; None when nobody restricts the choice."""
    available: tuple[str, ...] | None = None
    """Ids to choose among; None for all."""
    limit: int = 5
    allow_repeat: bool = False
    """Whether an agent that has finished may be selected again."""

    def __post_init__(self) -> None:
        for field in ("triggers", "problem_types", "previous", "exclude", "available"):
            if (words := getattr(self, field)) is not None:
                object.__setattr__(self, field, tuple(dict.fromkeys(_checked_words(words, field))))
        if self.caller is not None:
            _checked_text(self.caller, "caller")
        if (
            isinstance(self.limit, bool)
            or not isinstance(self.limit, int)
            or not 1 <= self.limit <= MOST_ROWS
        ):
            raise GraphInputError("limit", f"{self.limit!r} does not fit; give 1 to {MOST_ROWS}.")

    @cached_property
    def words(self) -> frozenset[str]:
        """The triggers, normalised."""
        return frozenset(normalised(self.triggers))

    @cached_property
    def types(self) -> frozenset[str]:
        """The problem types, normalised."""
        return frozenset(normalised(self.problem_types))

    @cached_property
    def finished(self) -> frozenset[str]:
        """The agents that have finished."""
        return frozenset(self.previous)

    def compared(self, policy: Policy) -> tuple[frozenset[str], frozenset[str]]:
        """Triggers and problem types as the policy compares them: the seed's query takes them as they are."""
        if policy == "literal":
            return frozenset(self.triggers), frozenset(self.problem_types)
        return self.words, self.types


def checked_id(value: object, field: str) -> str:
    """An agent's id.

    Raises:
        GraphInputError: it is none.
    """
    if not isinstance(value, str) or not AGENT_ID.match(value):
        raise GraphInputError(
            field, f"{value!r} is no id; use lower-case letters, digits and hyphens, 64 at most."
        )
    return value


def checked_rel(value: str) -> Rel:
    """The name of a relation.

    Raises:
        GraphInputError: it is none.
    """
    for rel in RELS:
        if value == rel:
            return rel
    raise GraphInputError("rel", f"{value!r} is none; take one of {', '.join(RELS)}.")


def checked_depth(value: int) -> int:
    """How many hops are asked for.

    Raises:
        GraphInputError: they are too few or too many.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_HOPS:
        raise GraphInputError("depth", f"{value!r} does not fit; give 1 to {MOST_HOPS}.")
    return value


def checked_policy(value: str) -> Policy:
    """The name of a policy.

    Raises:
        GraphInputError: it is none.
    """
    for policy in POLICIES:
        if value == policy:
            return policy
    raise GraphInputError("policy", f"{value!r} is none; take one of {', '.join(POLICIES)}.")


def _checked_words(value: object, field: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (tuple, list, set, frozenset)):
        raise GraphInputError(field, f"{value!r} is no list of words.")
    given = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
    return tuple(_checked_text(word, field) for word in given)


def _checked_text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise GraphInputError(field, f"{value!r} is no text.")
    if len(value) > TEXT_LIMIT:
        raise GraphInputError(field, f"has {len(value)} characters; keep it under {TEXT_LIMIT}.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise GraphInputError(field, "holds half a character (a lone surrogate); remove it.") from error
    return value
