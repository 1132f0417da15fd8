"""Rules of approvals: which calls they match, how they are written, and what they say in words.

A policy is a preset or rules in their order. It stands under `[approvals]` in `pilothouse.toml`, or under
`"approvals"` in an agent's configuration; of several the strictest answer counts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from engine.core.actions import Reversibility
from engine.core.approvals import OUTSIDE, Answer, Call, Policy, Rule
from engine.core.journal import canonical
from engine.core.reasons import Reason
from engine.sandbox.paths import name_text

_SPECIAL = re.compile(r"([*?\[\]])")


def fits_path(pattern: str, path: str) -> bool:
    """Whether a path beneath the root fits; `*` and `?` stay within a name, `**` crosses directories."""
    if path.startswith(f"{OUTSIDE}:"):
        return False
    names, places = path.split("/"), {0}
    for part in (pattern.strip("/") or ".").split("/"):
        if part == "**":  # `src/**` is src itself and all beneath it; `**/x` is x anywhere
            places = set(range(min(places, default=len(names) + 1), len(names) + 1))
        else:
            places = {at + 1 for at in places if at < len(names) and fnmatchcase(names[at], part)}
    return len(names) in places


def fits(pattern: str, text: str) -> bool:
    """Whether a text fits; `*` stands for anything, `?` for one character, upper and lower case differ."""
    return fnmatchcase(text, pattern)


def literal(text: str) -> str:
    """The pattern that only this text fits."""
    return _SPECIAL.sub(r"[\1]", text)


def join_patterns(patterns: Iterable[str], sign: str) -> str:
    """Patterns as one text with a sign between them; where a pattern has the sign it stands in brackets."""
    return sign.join(re.sub(rf"(?<!\[){re.escape(sign)}(?!\])", f"[{sign}]", pattern) for pattern in patterns)


def split_patterns(text: str, sign: str) -> list[str]:
    """The patterns of a text that `join_patterns` made."""
    return [part for part in re.split(rf"(?<!\[){re.escape(sign)}(?!\])", text) if part]


FACTS = ("reversible", "changes", "network")
"""What a rule can say yes or no to."""
FORM = "[TOOL.]COMMAND [paths=GLOB,GLOB] [ARGUMENT=GLOB] [reversible|changes|network=yes|no] [cost_over=USD]"
TEXT_LIMIT = 2_000
_PLAIN = re.compile(r"[^\s'\"\\]+")
RULES_LIMIT = 200
PATHS_LIMIT = 100


class RuleError(ValueError):
    """A rule or a policy cannot be read; the message says where, what is wrong, and what to write."""


# ------------------------------------------------------------------ matching


def rule_matches(rule: Rule, call: Call) -> bool:
    """Whether a rule is about a call."""
    return not any(_misses(rule, call))


def mismatch(rule: Rule, call: Call) -> Reason:
    """Why a rule is not about a call; empty when it is."""
    return Reason("plan.problems", problems=tuple(_misses(rule, call)))


def _misses(rule: Rule, call: Call) -> Iterator[Reason]:
    if rule.tool and not fits(rule.tool, call.tool):
        yield Reason("rule.tool", tool=call.tool, rule=rule.tool)
    if rule.command and not fits(rule.command, call.command):
        yield Reason("rule.command", command=call.command, rule=rule.command)
    for name, pattern in rule.args.items():
        if not fits(pattern, argument(call, name)):
            value = argument(call, name)[:200]
            yield Reason("rule.argument", name=name, value=value, pattern=pattern[:200])
    if rule.paths:
        yield from _misses_paths(rule, call)
    facts = {"reversible": call.undo is not Reversibility.IRREVERSIBLE, "changes": call.changes}
    facts["network"] = bool(call.hosts)
    for name, holds in facts.items():
        patterns = getattr(rule, name)
        if patterns is not None and patterns != holds:
            yield Reason("rule.fact", name=name, holds=_yes(patterns))
    if rule.cost_over is not None and call.cost_usd <= rule.cost_over:
        yield Reason("rule.cost", cost=call.cost_usd, limit=rule.cost_over)


def _misses_paths(rule: Rule, call: Call) -> Iterator[Reason]:
    if not call.paths:
        yield Reason("rule.no-path")
        return
    if rule.answer is Answer.ALLOW:
        for path in call.paths:
            if not any(fits_path(pattern, path) for pattern in rule.paths):
                yield Reason("rule.path", path=path, paths=rule.paths)
        return
    # Where a path leaves the root by its words nobody knows where it leads: the strict rule counts.
    strict = (path.startswith(f"{OUTSIDE}:") for path in call.paths)
    touched = (fits_path(pattern, path) for pattern in rule.paths for path in call.paths)
    if not any(strict) and not any(touched):
        yield Reason("rule.paths", touched=tuple(call.paths), paths=rule.paths)


def argument(call: Call, name: str) -> str:
    """An argument as globs are compared with it; a program's line in one form, however it was given."""
    value = call.args.get(name)
    if name == "command" and call.line:
        return call.line
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical(value)


# ------------------------------------------------------------------ the narrowest that is sensible


def narrowest_rule(call: Call) -> Rule:
    """The narrowest rule that allows a call: its command, with exactly these paths or this program line.

    What is written into a file is left open, as otherwise no second call would ever fit.
    """
    rule = Rule(Answer.ALLOW, literal(call.tool), literal(call.command))
    if call.line:
        return replace(rule, args={"command": literal(call.line)})
    if call.paths and not any(path.startswith(f"{OUTSIDE}:") for path in call.paths):
        return replace(rule, paths=tuple(literal(path) for path in call.paths))
    return replace(rule, args={name: literal(argument(call, name)) for name in sorted(call.args)})


def narrowest_rule_for(calls: Iterable[Call]) -> Rule:
    """The narrowest rule that allows several calls of one command, as far as they differ in paths only."""
    first, *others = calls
    rule = narrowest_rule(first)
    for call in others:
        other = narrowest_rule(call)
        if rule.paths and other.paths and other.command == rule.command:
            rule = replace(rule, paths=tuple(dict.fromkeys((*rule.paths, *other.paths))))
    return rule


def shape(call: Call) -> str:
    """The same for calls that ask the same kind of thing: the command, and a program's name."""
    program = call.line.split(" ", 1)[0] if call.line else ""
    return f"{call.name} {program}".strip()


# ------------------------------------------------------------------ on a line


def rule_text(rule: Rule) -> str:
    """The rule on a line, as `read_rule` takes it."""
    name = rule.command or "*"
    if rule.tool not in ("", "simple_coder"):
        name = f"{rule.tool}.{name}"
    words = [quoted(name)] if name != "*" or not rule.tool else [f"{rule.tool}.*"]
    if rule.paths:
        words.append(_pair("paths", join_patterns(rule.paths, ",")))
    words += [_pair(key, value) for key, value in rule.args.items()]
    words += [f"{key}={_yes(value)}" for key in FACTS if (value := getattr(rule, key)) is not None]
    if rule.cost_over is not None:
        words.append(f"cost_over={rule.cost_over:g}")
    return " ".join(words)


def rule_line(rule: Rule) -> str:
    """A rule with its answer, for those that may deny."""
    return f"{rule.answer} {rule_text(rule)}"


def read_rule(text: str) -> Rule:
    """A rule from a line such as `write paths=src/**`.

    Raises:
        RuleError: it cannot be read; the message says what is wrong and how a rule is written.
    """
    if len(text) > TEXT_LIMIT:
        raise RuleError(f"the rule is longer than {TEXT_LIMIT:,} characters")
    words = split_words(text, f"the rule: {{}}; quote patterns with blanks: {FORM}")
    if not words or "=" in words[0]:
        raise RuleError(f"the rule begins with a command, or * for all: {FORM}")
    tool, _, command = words[0].rpartition(".")
    fields: dict[str, Any] = {"command": command, "tool": tool or ("simple_coder" if command != "*" else "")}
    args: dict[str, str] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise RuleError(f"'{word[:60]}' is no NAME=VALUE: {FORM}")
        if name == "paths":
            fields["paths"] = split_patterns(value, ",")
        elif name in FACTS or name == "cost_over":
            fields[name] = scalar(value)
        else:
            args[name] = value
    return rule_of({**fields, "args": args, "answer": Answer.ALLOW.value}, "the rule")


def _pair(name: str, value: str) -> str:
    return f"{name}={quoted(value)}"


def quoted(text: str) -> str:
    """As a shell would need it, except that patterns need no quotes here."""
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def split_words(text: str, problem: str) -> list[str]:
    """The words of a line as a shell has them.

    Raises:
        RuleError: it is none; the message is `problem` with the reason in it.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RuleError(problem.format(error)) from None


def scalar(value: str) -> Any:
    """What a word on a line means: yes, no, or a number; else the word, which whoever checks it refuses."""
    if value in ("yes", "no"):
        return value == "yes"
    try:
        return float(value)
    except ValueError:
        return value


def is_amount(value: object) -> bool:
    """Whether a value is an amount of US dollars."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def leaves_root(paths: Iterable[str]) -> bool:
    """Whether one of these globs is not beneath the sandbox root."""
    return any(path.startswith("/") or ".." in path.split("/") for path in paths)


# ------------------------------------------------------------------ in words


def words_of(rule: Rule) -> str:
    """What a rule means, for the operator who is about to give it."""
    command = rule.command if rule.command not in ("", "*") else "every command"
    tool = "" if rule.tool in ("", "*", "simple_coder") else f" of {rule.tool}"
    parts = [f"{command}{tool}"]
    if rule.paths:
        how = "only on" if rule.answer is Answer.ALLOW else "touching any of"
        parts.append(f"{how} {', '.join(rule.paths)}")
    parts += [f"where {name} is {_seen(value)}" for name, value in rule.args.items()]
    for name in FACTS:
        if (value := getattr(rule, name)) is not None:
            parts.append(_FACT_WORDS[name, value])
    if rule.cost_over is not None:
        parts.append(f"once the goal has cost more than ${rule.cost_over:g}")
    open_ended = not (rule.paths or rule.args)
    return ", ".join(parts) + (", with any arguments" if open_ended else "")


def _seen(text: str) -> str:
    """A text in which nothing is hidden: what cannot be printed stands as its bytes."""
    return name_text(text.encode("utf-8", "replace").decode())


_FACT_WORDS = {
    ("reversible", True): "where it can be undone",
    ("reversible", False): "where it cannot be undone",
    ("changes", True): "where it changes something",
    ("changes", False): "where it changes nothing",
    ("network", True): "where it reaches the network",
    ("network", False): "where it names no host",
}


# ------------------------------------------------------------------ from data


def rule_of(given: object, where: str) -> Rule:
    """A rule from a table of the settings or an object of JSON.

    Raises:
        RuleError: something in it is wrong; the message begins with `where`.
    """
    if not isinstance(given, Mapping):
        raise RuleError(f"{where}: a table is expected, such as {{ answer = 'ask', command = 'rm' }}")
    known = {"answer", "tool", "command", "args", "paths", "cost_over", "reason", *FACTS}
    if unknown := sorted(str(key) for key in given if key not in known):
        raise RuleError(f"{where}: there is no '{unknown[0][:40]}'; a rule has: {', '.join(sorted(known))}")
    if not any(given.get(key) not in (None, "", {}, [], ()) for key in known - {"answer", "reason"}):
        raise RuleError(f"{where}: it says of no call; give command = '*' to mean all")
    paths = _texts(given.get("paths", ()), f"{where}: paths")
    if leaves_root(paths):
        raise RuleError(
            f"{where}: paths are globs beneath the sandbox root, without a leading / and without .."
        )
    facts: dict[str, Any] = {}
    for name in FACTS:
        facts[name] = given.get(name)
        if facts[name] is not None and not isinstance(facts[name], bool):
            raise RuleError(f"{where}: {name} is true or false (on a line: yes or no), not {facts[name]!r}")
    cost = given.get("cost_over")
    if cost is not None and not is_amount(cost):
        raise RuleError(f"{where}: cost_over is an amount in US dollars, not {cost!r}")
    return Rule(
        answer_of(given.get("answer", "ask"), f"{where}: answer"),
        _text(given.get("tool", ""), f"{where}: tool"),
        _text(given.get("command", ""), f"{where}: command"),
        _args(given.get("args", {}), f"{where}: args"),
        paths,
        **facts,
        cost_over=None if cost is None else float(cost),
        reason=_text(given.get("reason", ""), f"{where}: reason"),
    )


def answer_of(given: object, where: str) -> Answer:
    """An answer by its name.

    Raises:
        RuleError: there is none of that name.
    """
    if not isinstance(given, str) or given not in list(Answer):
        raise RuleError(f"{where} is {', '.join(Answer)}, not {given!r}")
    return Answer(given)


def _text(given: object, where: str) -> str:
    if not isinstance(given, str) or len(given) > TEXT_LIMIT:
        raise RuleError(f"{where}: a text of up to {TEXT_LIMIT:,} characters is expected")
    return given


def _texts(given: object, where: str) -> tuple[str, ...]:
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list | tuple) or len(given) > PATHS_LIMIT:
        raise RuleError(f"{where}: a list of up to {PATHS_LIMIT} texts is expected")
    return tuple(_text(text, where) for text in given)


def _args(given: object, where: str) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise RuleError(f"{where}: a table of argument names and globs is expected")
    return {_text(name, where): _text(value, f"{where}.{name}") for name, value in given.items()}


APPROVALS_KEY = "approvals"
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


def read_policy(given: object, where: str = APPROVALS_KEY) -> Policy:
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
    return read_policy(config.get(APPROVALS_KEY, {}))


def _preset(name: object, where: str) -> Policy:
    if not isinstance(name, str) or name not in PRESETS:
        raise RuleError(f"{where}: there is no preset {name!r}; presets: {', '.join(PRESETS)}")
    return PRESETS[name]
