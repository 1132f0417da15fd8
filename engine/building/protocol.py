"""Phase 3: what an agent takes and returns, and whom it may call (ontology spec §2.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from engine.agents.clarity import SLOTS, ProblemClarity
from engine.agents.context import ConversationSummary, HandoffContext
from engine.agents.kinds import AgentType, ReturnBehavior
from engine.agents.result import HandoffResult
from engine.agents.spec import ANYBODY, AgentSpec, Receives, Returns
from engine.agents.values import RESERVED
from engine.building.findings import Findings
from engine.building.skill import SkillDefinition, words_of

_RECEIVES: Mapping[str, str] = {
    "requires_what": "what",
    "requires_who": "who",
    "requires_success": "success",
    "min_clarity": "problem_clarity",
    "accepts_previous": "previous_analyses",
    "accepts_focus_areas": "focus_areas",
    "accepts_conversation": "conversation",
}
_RETURNS: Mapping[str, str] = {
    "output_format": "output_format",
    "key_findings": "key_findings",
    "recommendations": "recommendations",
    "confidence_score": "confidence",
    "score_names": "scores",
    "suggested_next": "suggested_next_agents",
    "open_questions": "open_questions",
}
_INPUTS = re.compile(r"\b(required inputs?|inputs? required|what (you|i) need (from you|first))\b", re.I)
_SLOT_WORDS = {
    "what": re.compile(r"\b(problem|challenge|task|topic)\b", re.I),
    "who": re.compile(r"\b(who|audience|users?|customers?|stakeholders?|persona)\b", re.I),
    "success": re.compile(r"\b(success|goals?|metrics?|acceptance)\b", re.I),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


def fields_received() -> frozenset[str]:
    """Names that an agent may say it receives: fields of the context and of what it carries."""
    models = (HandoffContext, ProblemClarity, ConversationSummary)
    return frozenset(name for model in models for name in model.model_fields)


def draft_handoffs(skill: SkillDefinition, found: Findings) -> dict[str, Any]:
    """What the skill hints at, above the table of its type."""
    receives: dict[str, Any] = {}
    for section in skill.sections:
        if _INPUTS.search(section.title):
            named = (slot for slot, word in _SLOT_WORDS.items() if word.search(section.text))
            receives |= {f"requires_{slot}": True for slot in named}
    known = fields_received()
    for name in _names(skill.declared("inputs")):
        plain = name.rpartition(".")[2].replace("-", "_").lower()
        if plain in SLOTS:
            receives[f"requires_{plain}"] = True
        elif plain not in known:
            words = f"the input {name} is no field of a handoff; the task has to say it"
            found.warn("UNKNOWN_INPUT", words, "inputs")
    scores = [name for name in _names(skill.declared("outputs")) if _NAME.fullmatch(name)]
    plain_results = set(HandoffResult.model_fields)
    returns = {"score_names": [name for name in scores if name.replace("-", "_") not in plain_results]}
    return {"receives": receives, "returns": returns if returns["score_names"] else {}}


def _names(said: Any) -> tuple[str, ...]:
    """Names of a declared list; items may be texts or mappings with a name."""
    if isinstance(said, dict):
        return tuple(map(str, said))
    if isinstance(said, list):
        named = (one.get("name") if isinstance(one, dict) else one for one in said)
        return tuple(one.strip() for one in named if isinstance(one, str) and one.strip())
    return words_of(said)


def routes_of(spec: AgentSpec) -> dict[str, tuple[str, ...]]:
    """Ids of agents that a spec's routing names, by path."""
    routing = spec.handoff.routing
    callers = routing.can_be_called_by if routing.can_be_called_by != ANYBODY else ()
    return {
        "handoff.routing.can_delegate_to": routing.can_delegate_to,
        "handoff.routing.can_be_called_by": callers,
    }


def chains_of(spec: AgentSpec) -> dict[str, tuple[str, ...]]:
    """Ids of agents that a spec's chaining names, by path."""
    return {
        "chaining.precedes": tuple(one.id for one in spec.chaining.precedes),
        "chaining.follows": tuple(one.id for one in spec.chaining.follows),
    }


def tell_pending(
    named: Mapping[str, tuple[str, ...]], exists: Callable[[str], bool], found: Findings
) -> None:
    """Tell of agents that are named and not registered; they may come later."""
    for path, ids in named.items():
        for one in ids:
            if one not in RESERVED and not exists(one):
                found.warn("PENDING", f"{one} is not registered; this is looked at again when it is", path)


def check_protocol(spec: AgentSpec, exists: Callable[[str], bool], found: Findings) -> tuple[bool, bool]:
    """Whether what it receives and what it returns hold; routes to agents that are not there are told.

    Args:
        spec: the agent.
        exists: whether an agent is registered.
        found: where everything is told.
    """
    known = fields_received()
    results = set(HandoffResult.model_fields)
    unread = [name for name in Receives.model_fields if _RECEIVES.get(name) not in known]
    unread += [name for name in Returns.model_fields if _RETURNS.get(name) not in results]
    for name in unread:
        found.error("UNKNOWN_FIELD", f"{name} stands for no field of a handoff", f"handoff.{name}")
    routing = spec.handoff.routing
    tell_pending(routes_of(spec), exists, found)
    if spec.type is AgentType.ROLE and routing.return_behavior is ReturnBehavior.ITERATE:
        words = "a role talks and returns no partial results"
        where = "handoff.routing.return_behavior"
        found.error("BAD_RETURN_BEHAVIOR", words, where, "take passthrough or synthesize")
    bad = {one.where.partition(".")[2].partition(".")[0] for one in found.errors}
    return "receives" not in bad, not bad & {"returns", "routing"}
