"""Reads what an operator types behind `agent_create TYPE ID` as a specification: words, JSON or settings.

Pure: nothing is created here and no model is asked. Each part of a sentence keeps the words and the rule that
it came by. Where two readings are close the sentence is not guessed at: a question names both, and how to
write each so that it cannot be taken for the other. The goal is what the sentence says the agent does: `a
helper that runs it` is to `run it`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from engine.core.command import check_agent_id
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.improve.agent_types import AgentType, CheckContext, CreationError, check_settings, type_of
from engine.improve.sentence_rules import RULES, Ambiguity, SentencePart, SentenceReader
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.library.words import words_of
from engine.planning.thinkers.clauses import split_clauses
from engine.value import dataclass, field

_GOAL_WORD = re.compile(
    r"(?<![\w'-])(?P<lead>goals?\s*[:=]|(?:whose|its|with\s+the|the)\s+goal\s+(?:is\s+to|is|to|of))\s*"
    r"(?P<rest>\S.*)\Z",
    re.I | re.S,
)
_ROLE = (
    r"(?:[\w'-]+\s+){0,5}?"
    r"(?:agent|bot|helper|assistant|worker|coder|tester|writer|reviewer|one|someone)\s*,?\s*"
)
_WHO = re.compile(
    rf"^(?:(?:(?:please|make|create|have|me|us)\s+){{0,3}}(?:(?:an?|the|one)\s+)?{_ROLE})?"
    r"(?P<lead>(?:that|which|who)(?:\s+(?:can|will|should|shall|must|is\s+to|has\s+to))?|to)\s+"
    r"(?P<rest>\S.*)\Z",
    re.I | re.S,
)
_NO_DEED = frozenset({"is", "are", "has", "have", "knows", "know", "likes", "like", "be"})
"""Verbs that say what an agent is, and give it nothing to do."""
_JOINED = re.compile(r"(?P<joint>(?:,\s*(?:and\s+|then\s+)*|\b(?:and|then)\s+)+)(?P<verb>[a-z]+s)\b", re.I)


def split_introduction(text: str) -> tuple[str, str, bool]:
    """The words that introduce a goal, what follows them, and whether its verbs have an `s`.

    The lead is empty where nothing introduces one, and the rest is empty where the words only describe.
    """
    if match := _GOAL_WORD.search(text):
        return match["lead"].strip(" :="), match["rest"].strip(), False
    if match := _WHO.match(text):
        lead, rest = " ".join(match["lead"].split()), match["rest"].strip()
        first = rest.partition(" ")[0].casefold()
        if first in _NO_DEED:
            return lead, "", False
        return lead, rest, lead.casefold() in ("that", "which", "who")
    return "", text.strip(), False


def imperative(text: str, verbs: Collection[str]) -> str:
    """The text with its verbs as they stand in a goal.

    Its first word loses its `s`; a later one only after a comma, `and` or `then`, and where that makes one of
    the verbs: `runs the tests and lists files` keeps its files.
    """
    first, blank, rest = text.partition(" ")

    def base(match: re.Match[str]) -> str:
        verb = base_verb(match["verb"])
        return match["joint"] + (verb if verb.casefold() in verbs else match["verb"])

    return base_verb(first) + blank + (_JOINED.sub(base, rest) if blank else "")


def base_verb(verb: str) -> str:
    """A verb without the `s` of the third person."""
    low = verb.casefold()
    if re.fullmatch(r"[a-z]{2,}[^aeiou]ies", low):
        return verb[:-3] + "y"
    if low in ("does", "goes") or re.fullmatch(r"[a-z]+(?:ss|sh|ch|x|zz)es", low):
        return verb[:-2]
    return verb[:-1] if re.fullmatch(r"[a-z]+[^s]s", low) else verb


SENTENCE_LIMIT = 4_000
"""Characters of a sentence, as of a description."""


@dataclass(frozen=True, slots=True)
class ParsedSentence:
    """What a sentence says."""

    text: str
    parts: tuple[SentencePart, ...] = ()
    questions: tuple[Ambiguity, ...] = ()
    """Empty where every word has one reading; nothing is created before."""

    @property
    def goals(self) -> tuple[str, ...]:
        """The goals in their order."""
        return tuple(part.value for part in self.parts if part.name == "goal")

    @property
    def settings(self) -> dict[str, Any]:
        """What the agent's configuration is to have."""
        settings: dict[str, Any] = {}
        for part in self.parts:
            if part.name != "goal":
                _put(settings, part.name, part.value)
        return settings

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it for a person."""
        return (*(part.line for part in self.parts), *(question.line for question in self.questions))


def understand(
    text: str,
    *,
    agents: Collection[str] = (),
    programs: Collection[str] = (),
    verbs: Collection[str] = (),
    covers: Callable[[str], bool] = lambda _text: False,
) -> ParsedSentence:
    """What a sentence about a new agent says; a pure function.

    Args:
        text: the sentence; what stands in quotes belongs to the goal as it is.
        agents: ids of the agents that there are, which it may work for.
        programs: names of programs that the workspace allows.
        verbs: verbs with which a goal may begin.
        covers: whether the plan library knows what to do for a text.
    """
    reader = SentenceReader(text.strip(), frozenset(agents), frozenset(programs))
    for rule in RULES:
        rule(reader)
    reader.settle_conflicts()
    _rest(reader, frozenset(verbs), covers)
    return ParsedSentence(text, tuple(reader.parts), tuple(reader.questions))


def _rest(reader: SentenceReader, verbs: frozenset[str], covers: Callable[[str], bool]) -> None:
    """What is left over: the goals, or no more than a description."""
    left = reader.left
    if not left:
        return
    lead, rest, inflected = split_introduction(left)
    if not rest:
        return
    if not lead and not covers(rest):
        inflected = base_verb(rest.partition(" ")[0]) in verbs and rest.partition(" ")[0] not in verbs
        sure = _sounds_like_a_goal(imperative(rest, verbs) if inflected else rest, verbs)
        if sure is None:
            readings = (f"a goal: write goal: {rest}", f"what it is: write an agent, {rest}")
            reader.questions.append(Ambiguity(rest, readings))
        if not sure:
            return
    rule = f"what follows “{lead}”" if lead else "it begins as something to do"
    for text in _split_goals(rest):
        reader.parts.append(SentencePart("goal", imperative(text, verbs) if inflected else text, text, rule))


_AFTER_VERB = re.compile(
    r"(?:the|an?|all|every|each|my|our|this|that|these|its?|to|in|into|from|for|on|with|up|as|and|how|why|what|me|us|"
    r"new|\d+)\b|[\x22'`“‘\w]*[./_\x22'`“‘]",
    re.I,
)


def _sounds_like_a_goal(text: str, verbs: frozenset[str]) -> bool | None:
    """Whether a text asks for something to be done; None where it may as well name what the agent is."""
    first, _, rest = text.partition(" ")
    if first.casefold().strip(",:") not in verbs:
        return False
    return True if not rest or _AFTER_VERB.match(rest) else None


def _split_goals(text: str) -> Sequence[str]:
    """Goals stand between semicolons; those inside quotes part nothing."""
    cuts = [word.start for word in words_of(text) if word.text == ";" and not word.quoted]
    places = zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(text)], strict=True)
    goals = [re.sub(r"^(?:and|then)\s+", "", text[start:end].strip(" ,.")) for start, end in places]
    return [goal for goal in goals if goal]


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
    understood: ParsedSentence | None = None
    """How a sentence was read; None where none was typed."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What would be created, line by line, for a person."""
        head = f"a {self.kind.name} named {self.id}: {self.kind.about}"
        if self.understood is not None:
            lines = list(self.understood.lines)
        else:
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
    request, ident, rest = split_request(argument)
    kind = type_of(request)
    if len(rest) > 1 and rest[0] == rest[-1] == "'" and "'" not in rest[1:-1]:
        rest = rest[1:-1].strip()
    if ident in taken:
        raise CreationError(f"agent {ident} exists already, or its history bears the name; choose another id")
    config = settings_in(rest)
    if config is None and recipes_cover(f"{ident} {rest}", library) and not recipes_cover(rest, library):
        raise CreationError(f"'{ident}' begins what it is to do; put an id before it: {_USAGE}")
    if config is None:
        return check_specification(_from_sentence(kind, ident, rest, allowed, library), allowed)
    config = prepare(config)
    goals = _goals(config)
    description = config.get("description", "")
    given = description if isinstance(description, str) else ""
    return check_specification(Specification(kind, ident, given, config, goals), allowed)


def check_specification(specification: Specification, allowed: CheckContext) -> Specification:
    """The specification, if an agent can be made of it.

    Raises:
        CreationError: it cannot; the message names the first thing that is wrong, and how many more are.
    """
    wrong = list(check_settings(specification.kind, specification.config, allowed))
    for text in specification.goals:
        if why := specification.kind.check_goal(text):
            wrong.append(clean_line(why, limit=500))
    if len(specification.goals) > GOALS_LIMIT:
        wrong.append(f"{len(specification.goals)} goals are too many at once; at most {GOALS_LIMIT}")
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CreationError(wrong[0] + more)
    return specification


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
    settings: dict[str, Any] = {}
    at = 0
    while (match := _SETTING.match(text, at)) is not None:
        _put(settings, match[1], _value(match[2]))
        at = match.end()
    return settings if at == len(text) else None


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
    inner = settings
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
    goal, several = config.pop("goal", None), config.pop("goals", [])
    goals = [*([] if goal is None else [goal]), *(several if isinstance(several, list) else [several])]
    if not all(isinstance(text, str) and text.strip() for text in goals):
        raise CreationError('a goal is a text, and goals a list of texts: {"goal": "run the tests"}')
    return tuple(text.strip() for text in goals)


def _from_sentence(
    kind: AgentType, ident: str, text: str, allowed: CheckContext, library: PlanLibrary
) -> Specification:
    if len(text) > SENTENCE_LIMIT:
        raise CreationError(f"the sentence has {len(text):,} characters; at most {SENTENCE_LIMIT:,} are read")
    unseen = sum(unicodedata.category(goal) == "Cc" and goal not in "\n\t" for goal in text)
    if unseen:
        raise CreationError(f"the sentence holds {unseen} control characters; type it without them")
    understood = understand(
        text,
        agents=allowed.agents,
        programs=allowed.policy.programs,
        verbs=library.verbs,
        covers=lambda words: recipes_cover(words, library),
    )
    return Specification(kind, ident, understood.text, understood.settings, understood.goals, understood)


def recipes_cover(text: str, library: PlanLibrary) -> bool:
    """Whether recipes know what to do for every clause of a text."""
    clauses = split_clauses(text, library)
    return bool(clauses) and all(
        any(matcher.run(clause.words).match for _, matcher in library.starting_with(clause.words[0].key))
        for clause in clauses
    )
