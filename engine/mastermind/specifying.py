"""What an operator types behind `agent_create TYPE ID`, read as a specification: words, JSON or settings.

Pure: nothing is created here. Source: mindX spec §1.2 and §7 nos. 7 to 10.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.domain.commands import check_agent_id
from engine.domain.strict_json import StrictJsonError, read_json
from engine.domain.text import clean_line
from engine.journal.event import canonical
from engine.library import PlanLibrary
from engine.mastermind.agent_types import AgentType, Allowed, CreationError, check_settings, type_of
from engine.mastermind.understanding import SENTENCE_LIMIT, Understood, understand
from engine.thinkers.clauses import split_clauses

CONFIG_LIMIT = 1_100_000
"""Characters of a configuration; a program of a million fits."""
GOALS_LIMIT = 20
_SETTING = re.compile(r"""([a-z_][\w.]*)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)(?:\s+|\Z)""", re.S)
_USAGE = "agent_create TYPE ID [SENTENCE | JSON | SETTING=VALUE …]"


@dataclass(frozen=True, slots=True)
class Specification:
    """An agent that can be created."""

    kind: AgentType
    id: str
    description: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    goals: tuple[str, ...] = ()
    understood: Understood | None = None
    """How a sentence was read; None where none was typed."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What would be created, line by line, for a person."""
        head = f"a {self.kind.name} named {self.id}: {self.kind.about}"
        if self.understood is not None:
            told = list(self.understood.lines)
        else:
            told = [f"goal: {clean_line(text, limit=300)}" for text in self.goals]
            told += [f"{name}: {clean_line(str(value), limit=300)}" for name, value in self.config.items()]
        if not self.goals:
            told.append("goal: none yet; goal TEXT gives it one")
        return (head, *told, "it is paused until you let it run")


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
    allowed: Allowed,
    library: PlanLibrary,
    *,
    taken: Sequence[str] = (),
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config,
) -> Specification:
    """What is to be created, read and checked as far as it can be without creating it.

    A sentence whose words have two readings is no error: `understood.questions` has them.

    Args:
        argument: what was typed behind the verb.
        allowed: what the configuration is checked against.
        library: tells what begins a goal.
        taken: ids that are or were an agent's.
        prepare: what is done to settings first, such as reading a program's file.

    Raises:
        CreationError: it cannot be created; the message is one line.
    """
    wanted, ident, rest = split_request(argument)
    kind = type_of(wanted)
    if len(rest) > 1 and rest[0] == rest[-1] == "'" and "'" not in rest[1:-1]:
        rest = rest[1:-1].strip()
    if ident in taken:
        raise CreationError(f"agent {ident} exists already, or its history bears the name; choose another id")
    config = settings_in(rest)
    if config is None and covers(f"{ident} {rest}", library) and not covers(rest, library):
        raise CreationError(f"'{ident}' begins what it is to do; put an id before it: {_USAGE}")
    if config is None:
        return checked(_from_sentence(kind, ident, rest, allowed, library), allowed)
    config = prepare(config)
    goals = _goals(config)
    description = config.get("description", "")
    given = description if isinstance(description, str) else ""
    return checked(Specification(kind, ident, given, config, goals), allowed)


def checked(said: Specification, allowed: Allowed) -> Specification:
    """The specification, if an agent can be made of it.

    Raises:
        CreationError: it cannot; the message names the first thing that is wrong, and how many more are.
    """
    wrong = list(check_settings(said.kind, said.config, allowed))
    for text in said.goals:
        if why := said.kind.check_goal(text):
            wrong.append(clean_line(why, limit=500))
    if len(said.goals) > GOALS_LIMIT:
        wrong.append(f"{len(said.goals)} goals are too many at once; at most {GOALS_LIMIT}")
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CreationError(wrong[0] + more)
    return said


def settings_in(text: str) -> dict[str, Any] | None:
    """The settings in a JSON object or in `name=value` words; None where the text is a sentence, or nothing.

    Quotes around JSON count for nothing. Dots in a name go inside: `budget.usd=2`.

    Raises:
        CreationError: it begins like JSON and is none, or is no object, or a setting stands twice.
    """
    if not text:
        return {}
    if len(text) > CONFIG_LIMIT:
        raise CreationError(f"what follows the id has {len(text):,} characters; at most {CONFIG_LIMIT:,}")
    bare = text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == "'" else text
    if bare.lstrip("'\"").startswith(("{", "[")):
        return _json_object(bare)
    found: dict[str, Any] = {}
    at = 0
    while (match := _SETTING.match(text, at)) is not None:
        _put(found, match[1], _value(match[2]))
        at = match.end()
    return found if at == len(text) else None


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


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    inner = found
    for part in outer:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise CreationError(
                f"'{clean_line(name, limit=60)}': {clean_line(part, limit=40)} is a value already"
            )
    if last in inner:
        raise CreationError(f"'{clean_line(name, limit=60)}' is given twice")
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
    one, several = config.pop("goal", None), config.pop("goals", [])
    goals = [*([] if one is None else [one]), *(several if isinstance(several, list) else [several])]
    if not all(isinstance(text, str) and text.strip() for text in goals):
        raise CreationError('a goal is a text, and goals a list of texts: {"goal": "run the tests"}')
    return tuple(text.strip() for text in goals)


def _from_sentence(
    kind: AgentType, ident: str, text: str, allowed: Allowed, library: PlanLibrary
) -> Specification:
    if len(text) > SENTENCE_LIMIT:
        raise CreationError(f"the sentence has {len(text):,} characters; at most {SENTENCE_LIMIT:,} are read")
    unseen = sum(unicodedata.category(one) == "Cc" and one not in "\n\t" for one in text)
    if unseen:
        raise CreationError(f"the sentence holds {unseen} control characters; type it without them")
    understood = understand(
        text,
        agents=allowed.agents,
        programs=allowed.policy.programs,
        verbs=library.verbs,
        covers=lambda words: covers(words, library),
    )
    return of_understood(kind, ident, understood)


def of_understood(kind: AgentType, ident: str, understood: Understood) -> Specification:
    """The specification that a sentence says; its words are the agent's description."""
    return Specification(kind, ident, understood.text, understood.settings, understood.goals, understood)


def argument_of(said: Specification) -> str:
    """What is typed behind `agent_create` for exactly this specification, as JSON."""
    config = {**said.config, "description": said.description, "goals": list(said.goals)}
    return f"{said.kind.name} {said.id} {canonical(config)}"


def covers(text: str, library: PlanLibrary) -> bool:
    """Whether recipes know what to do for every clause of a text."""
    clauses = split_clauses(text, library)
    return bool(clauses) and all(
        any(matcher.run(clause.words).match for _, matcher in library.starting_with(clause.words[0].key))
        for clause in clauses
    )
