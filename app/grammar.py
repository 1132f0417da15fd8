"""The command bar's grammar: how a line is read and completed by the table of `app.verbs`.

A line is a verb and its raw argument text; the verb may be in any case, the argument keeps every
character. The same lines work in the cockpit's bar and in `pilothouse do` (spec mindX §1, §7 items 1-10).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from pydantic import ValidationError

from app import crew_verbs, mastermind_verbs, plugins
from app.verb import Context, GrammarError, Intent, Local, Verb, split_word
from app.verbs import VERBS, complaint
from engine.domain.text import clean_line

_BY_NAME = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}
_TAKEN = frozenset(_BY_NAME)
LINE_LIMIT = 1_000_000
IMPERATIVES = frozenset(
    {
        *("make", "speed", "fix", "mend", "repair", "refactor", "optimise", "optimize", "tune"),
        *("enhance", "reduce", "simplify", "harden", "clean"),
    }
)
"""Words that begin a wish for something better; such a line is shown as it is understood, and not done."""
_OPTION = re.compile(r"--([a-z]+)(?: ([A-Z]+))?")
"""An option in a usage, with the value that it takes."""
_SETTING = re.compile(r"(?P<before>(?P<name>[A-Za-z]+=)(?:\S*,)?)")
"""A setting such as `for=minto`, up to what is written last of its value."""
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")
_PREVIEW = re.compile(r"(.*\S)\s+\?\s*\Z", re.S)


def find_verb(name: str) -> Verb:
    """The verb with this name or alias, in any case.

    Raises:
        GrammarError: there is none; the message names the nearest.
    """
    verb = _verb(name)
    if verb is not None:
        return verb
    near = difflib.get_close_matches(name.lower(), (*_BY_NAME, *plugins.names()), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "type help for the words there are"
    raise GrammarError(f"'{name[:40]}' is no command here; {hint}")


def _verb(name: str) -> Verb | None:
    """The verb with this name, of a plugin too.

    Raises:
        GrammarError: it is a plugin's, which is broken.
    """
    verb = _BY_NAME.get(name.lower())
    if verb is not None:
        return verb
    found = plugins.plugin(name.lower(), _TAKEN)
    if found is not None and found.verb is None:
        raise GrammarError(
            f"'{found.name}' is of a plugin that cannot be used ({found.source}): {found.wrong}"
        )
    return found.verb if found is not None else None


def all_verbs() -> tuple[Verb, ...]:
    """Every verb, those of plugins last."""
    return (*VERBS, *(one.verb for one in plugins.plugins(_TAKEN) if one.verb is not None))


def broken_plugins() -> tuple[plugins.Plugin, ...]:
    """The plugins that cannot be used, with why."""
    return tuple(one for one in plugins.plugins(_TAKEN) if one.verb is None)


def asks_preview(line: str) -> str | None:
    """The line without the `?` behind it that asks what it would do; None where there is none."""
    match = _PREVIEW.match(line[: LINE_LIMIT + 1])
    return match[1] if match and match[1].strip().lower() not in ("?", "help") else None


def wishes(line: str) -> bool:
    """Whether a line that is no command says that something is to be better: `make tests faster`."""
    words = line.split(None, 2)
    return len(words) > 1 and words[0].lower() in IMPERATIVES and words[0].lower() not in _BY_NAME


def is_of_mastermind(line: str) -> bool:
    """Whether a line begins with a verb about the system itself, agents or identities."""
    verb = _BY_NAME.get(split_word(line.strip())[0].lower())
    return verb is not None and verb in mastermind_verbs.VERBS


def is_of_crew(line: str) -> bool:
    """Whether a line begins with a verb about agents that hand work to each other, or names a handoff."""
    name, _, rest = split_word(line.strip())
    verb = _BY_NAME.get(name.lower())
    if verb is None:
        return False
    named = rest.lstrip().startswith(crew_verbs.HANDOFF)
    return verb in crew_verbs.VERBS or (verb.name in crew_verbs.ON_HANDOFFS and named)


def hint(line: str) -> str:
    """How the verb at the beginning of a line is used; empty where it is none."""
    name = split_word(line.strip())[0]
    verb = _BY_NAME.get("!" if name.startswith("!") else name.lower())
    return f"{verb.usage} — {verb.help}" if verb is not None else ""


def read_line(line: str, context: Context) -> Intent:
    """What a line of the command bar asks for.

    Raises:
        GrammarError: it cannot be understood.
    """
    if wishes(line):
        return Local("wish", line.strip())
    verb, rest = verb_of(line)
    try:
        return verb.read(rest, context)
    except GrammarError as error:
        raise GrammarError(f"{error} · usage: {verb.usage}") from None
    except ValidationError as error:
        raise GrammarError(f"{complaint(error)} · usage: {verb.usage}") from None
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{clean_line(str(error), limit=200)} · usage: {verb.usage}") from None


def verb_of(line: str) -> tuple[Verb, str]:
    """The verb of a line, and what follows it.

    Raises:
        GrammarError: the line is empty or too long, or there is no such verb.
    """
    if len(line) > LINE_LIMIT:
        raise GrammarError(f"the line has {len(line)} characters; at most {LINE_LIMIT} are read")
    if (wrong := _NO_TEXT.search(line)) is not None:
        raise GrammarError(
            f"character {wrong.start() + 1} of the line is none that a text may have; leave it out"
        )
    text = line.strip()
    if text.startswith("!"):
        text = "! " + text[1:].strip()
    name, _, rest = split_word(text)
    if not name:
        raise GrammarError("type a command; help lists them")
    return find_verb(name), rest.strip()


def complete(line: str, context: Context, limit: int = 12) -> list[tuple[str, str]]:
    """Whole lines that the beginning of a line could become, with a few words about each."""
    text = line.lstrip()
    name, blank, rest = text.partition(" ")
    if not blank:
        found = [
            (verb.name + ("" if verb.usage == verb.name else " "), verb.help)
            for verb in VERBS
            if verb.name.startswith(name.lower())
        ]
        found += [(f"{each} ", "a plugin") for each in plugins.names() if each.startswith(name.lower())]
        return found[:limit]
    try:
        verb = _verb(name)
    except GrammarError:
        return []
    if verb is None:
        return []
    found = _matching(f"{verb.name} ", rest, list(verb.choices(context)))
    head, last, choices = _further(verb, rest, context)
    if head or last.startswith("--"):
        found += _matching(f"{verb.name} {head}", last, choices)
    return found[:limit]


def _matching(head: str, typed: str, choices: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The lines that choices make, those that begin with what was typed first."""
    wanted = typed.lower()
    starting = [one for one in choices if one[0].lower().startswith(wanted)]
    holding = [one for one in choices if wanted and wanted in one[0].lower() and one not in starting]
    return [(f"{head}{value}", about) for value, about in (*starting, *holding)]


def _further(verb: Verb, rest: str, context: Context) -> tuple[str, str, list[tuple[str, str]]]:
    """What stands before the last word, that word, and what it may be: an option, its value, an argument.

    Of a setting such as `sources=a,b` only what is behind the last comma is looked at.
    """
    before, blank, last = rest.rpartition(" ")
    head = before + blank
    if (found := _SETTING.match(last)) is not None:
        offered = verb.values(context).get(found["name"].lower(), ())
        return head + found["before"], last[len(found["before"]) :], list(offered)
    options = {f"--{name}": value for name, value in _OPTION.findall(verb.usage)}
    words, place = before.split(), 0
    while place < len(words) and words[place].startswith("--"):
        takes = options.get(words[place], "")
        if takes and place == len(words) - 1:
            return head, last, list(verb.values(context).get(words[place], ()))
        place += 2 if takes else 1
    if last.startswith("--") and place == len(words):
        left = {name: value for name, value in options.items() if name not in words}
        return head, last, [(f"{name} ", value or "takes no value") for name, value in left.items()]
    at = len(words) - place
    if at == 0:
        return head, last, list(verb.choices(context))
    # What may stand last may stand there more than once.
    return head, last, list(verb.more[min(at, len(verb.more)) - 1](context)) if verb.more else []
