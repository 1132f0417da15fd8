"""Policies of approvals from data: presets, and rules in their order.

Source: spec steering §1 row 18. A policy stands under `[approvals]` in `pilothouse.toml`, or under
`"approvals"` in an agent's configuration; of several the strictest answer counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.approval import Answer, Policy, Rule
from engine.steering.rules import RULES_LIMIT, RuleError, answer_of, rule_of

KEY = "approvals"
PRESETS: Mapping[str, Policy] = {
    "allow": Policy(),
    "ask-irreversible": Policy((Rule(Answer.ASK, reversible=False, reason="it cannot be undone"),)),
    "ask-changes": Policy((Rule(Answer.ASK, changes=True, reason="it changes something"),)),
    "ask": Policy(default=Answer.ASK),
}
"""Ready policies by name."""
ABOUT = {
    "allow": "nothing is asked",
    "ask-irreversible": "asked before what cannot be undone: programs, jobs",
    "ask-changes": "asked before whatever changes something",
    "ask": "asked before every action",
}


def read_policy(given: object, where: str = KEY) -> Policy:
    """A policy from a preset's name, or from a table with `preset`, `default` and `rules`.

    Rules come before those of the preset.

    Raises:
        RuleError: something in it is wrong; the message names the rule and says what to do.
    """
    if isinstance(given, str):
        return _preset(given, where)
    if not isinstance(given, Mapping):
        raise RuleError(f"{where}: a preset ({', '.join(PRESETS)}) or a table with rules is expected")
    if unknown := sorted(str(key) for key in given if key not in ("preset", "default", "rules")):
        raise RuleError(f"{where}: there is no '{unknown[0][:40]}'; it has: preset, default, rules")
    base = _preset(given.get("preset", "allow"), f"{where}: preset")
    rules = given.get("rules", [])
    if not isinstance(rules, list | tuple) or len(rules) > RULES_LIMIT:
        raise RuleError(f"{where}: rules is a list of up to {RULES_LIMIT} tables: [[{where}.rules]]")
    own = tuple(rule_of(rule, f"{where}: rule {number}") for number, rule in enumerate(rules, 1))
    default = answer_of(given["default"], f"{where}: default") if "default" in given else base.default
    return Policy((*own, *base.rules), default)


def policy_of(config: Mapping[str, Any]) -> Policy:
    """The policy in an agent's configuration; a silent one where there is none.

    Raises:
        RuleError: it is wrong.
    """
    return read_policy(config.get(KEY, {}))


def _preset(name: object, where: str) -> Policy:
    if not isinstance(name, str) or name not in PRESETS:
        raise RuleError(f"{where}: there is no preset {name!r}; presets: {', '.join(PRESETS)}")
    return PRESETS[name]
