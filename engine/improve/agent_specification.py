"""Reads what is typed behind `agent_create TYPE ID` as a specification: JSON, or settings and then words.

Pure: nothing is created here and no model is asked. The words describe the agent, and are its goal as well
where they begin with something to do: `second pair of hands` is a description, `run the tests` a goal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.core.command import check_agent_id
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.improve.agent_types import AgentType, CheckContext, CreationError, check_settings, type_of
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.thinkers.clauses import split_clauses
from engine.value import dataclass, field

TEXT_LIMIT = 4_000
"""Characters of the words behind the settings, as of a description."""
CONFIG_LIMIT = 1_100_000
"""Characters of a configuration; a program of a million fits."""
GOALS_LIMIT = 20
_SETTING = re.compile(r"""([a-z_][\w.]*)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)(?:\s+|\Z)""", re.S)
_USAGE = "agent_create TYPE ID [JSON | SETTING=VALUE … WORDS]"


@dataclass(frozen=True, slots=True)
class Specification:
    """An agent that can be created."""

    kind: AgentType
    id: str
    description: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    goals: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What would be created, line by line, for a person."""
        head = f"a {self.kind.name} named {self.id}: {self.kind.about}"
        lines = [f"goal: {clean_line(text, limit=300)}" for text in self.goals]
        lines += [f"{name}: {clean_line(str(value), limit=300)}" for name, value in self.config.items()]
        if not self.goals:
            lines.append("goal: none yet; goal TEXT gives it one")
        return (head, *lines, "it is paused until you let it run")


def split_request(argument: str) -> tuple[str, str, str]:
    """Type, id and the rest of what was typed behind the verb; blanks between them count for nothing.

    Raises:
        CreationError: the type or the id is missing, or the id is none.
    """
    words = argument.split(None, 2)
    if len(words) < 2:
        raise CreationError(f"{'an agent id' if words else 'an agent type'} is missing · usage: {_USAGE}")
    try:
        check_agent_id(words[1])
    except ValueError as error:
        raise CreationError(clean_line(str(error))) from None
    return words[0], words[1], words[2].strip() if len(words) > 2 else ""


def specify(
    argument: str,
    allowed: CheckContext,
    library: PlanLibrary,
    *,
    taken: Sequence[str] = (),
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config,
) -> Specification:
    """What is to be created, read and checked as far as it can be without creating it.

    Args:
        argument: what was typed behind the verb.
        allowed: what the configuration is checked against.
        library: tells what begins a goal.
        taken: ids that are or were an agent's.
        prepare: what is done to settings first, such as reading a program's file.

    Raises:
        CreationError: it cannot be created; the message is one line.
    """
    request, ident, rest = split_request(argument)
    kind = type_of(request)
    if len(rest) > 1 and rest[0] == rest[-1] == "'" and "'" not in rest[1:-1]:
        rest = rest[1:-1].strip()
    if ident in taken:
        raise CreationError(f"agent {ident} exists already, or its history bears the name; choose another id")
    config, words = settings_in(rest)
    if words and recipes_cover(f"{ident} {words}", library) and not recipes_cover(words, library):
        raise CreationError(f"'{ident}' begins what it is to do; put an id before it: {_USAGE}")
    config = prepare(config)
    goals = _goals(config)
    if words:
        if len(words) > TEXT_LIMIT:
            raise CreationError(f"the words have {len(words):,} characters; at most {TEXT_LIMIT:,} are read")
        if unseen := sum(unicodedata.category(sign) == "Cc" and sign not in "\n\t" for sign in words):
            raise CreationError(f"the words hold {unseen} control characters; type them without")
        config.setdefault("description", words)
        if not goals and words.split()[0].casefold() in library.verbs:
            goals = (words,)
    description = config.get("description", "")
    given = description if isinstance(description, str) else ""
    return check_specification(Specification(kind, ident, given, config, goals), allowed)


def check_specification(specification: Specification, allowed: CheckContext) -> Specification:
    """The specification, if an agent can be made of it.

    Raises:
        CreationError: it cannot; the message names the first thing that is wrong, and how many more are.
    """
    wrong = list(check_settings(specification.kind, specification.config, allowed))
    whys = map(specification.kind.check_goal, specification.goals)
    wrong += [clean_line(why, limit=500) for why in whys if why]
    if len(specification.goals) > GOALS_LIMIT:
        wrong.append(f"{len(specification.goals)} goals are too many at once; at most {GOALS_LIMIT}")
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CreationError(wrong[0] + more)
    return specification


def settings_in(text: str) -> tuple[dict[str, Any], str]:
    """The settings in a JSON object, or in `name=value` words at the beginning, and the words behind.

    Quotes around JSON count for nothing. Dots in a name go inside: `budget.usd=2`.

    Raises:
        CreationError: it begins like JSON and is none, or is no object, or a setting stands twice.
    """
    if not text:
        return {}, ""
    if len(text) > CONFIG_LIMIT:
        raise CreationError(f"what follows the id has {len(text):,} characters; at most {CONFIG_LIMIT:,}")
    bare = text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == "'" else text
    if bare.lstrip("'\"").startswith(("{", "[")):
        return _json_object(bare), ""
    settings: dict[str, Any] = {}
    at = 0
    while (match := _SETTING.match(text, at)) is not None:
        _put(settings, match[1], _value(match[2]))
        at = match.end()
    return settings, text[at:]


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = read_json(text)
    except StrictJsonError as error:
        tip = 'names and texts stand in double quotes, as in {"style": "plan"}; words need no brackets'
        why = clean_line(str(error), limit=200)
        raise CreationError(f"what follows the id looks like JSON and is not: {why} · {tip}") from None
    if not isinstance(value, dict):
        raise CreationError('an agent\'s configuration is a JSON object, not a list: {"style": "plan"}')
    return value


def _put(settings: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    inner, shown = settings, clean_line(name, limit=60)
    for part in outer:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise CreationError(f"'{shown}': {clean_line(part, limit=40)} is a value already")
    if last in inner:
        raise CreationError(f"'{shown}' is given twice")
    inner[last] = value


def _value(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return read_json(text)
    except StrictJsonError:
        return text


def _goals(config: dict[str, Any]) -> tuple[str, ...]:
    """Take the goals out of a configuration: `goal`, or `goals` as a list of texts.

    Raises:
        CreationError: they are no texts.
    """
    goal, several = config.pop("goal", None), config.pop("goals", [])
    goals = [*([] if goal is None else [goal]), *(several if isinstance(several, list) else [several])]
    if not all(isinstance(text, str) and text.strip() for text in goals):
        raise CreationError('a goal is a text, and goals a list of texts: {"goal": "run the tests"}')
    return tuple(text.strip() for text in goals)


def recipes_cover(text: str, library: PlanLibrary) -> bool:
    """Whether recipes know what to do for every clause of a text."""
    clauses = split_clauses(text, library)
    return bool(clauses) and all(
        any(matcher.run(clause.words).match for _, matcher in library.starting_with(clause.words[0].key))
        for clause in clauses
    )
