"""The command bar's grammar: how a line is read and completed by the table of `app.verbs`.

A line is a verb and its raw argument text; the verb may be in any case, the argument keeps every
character. The same lines work in the cockpit's bar and in `pilothouse do` (spec mindX §1, §7 items 1-10).
"""

from __future__ import annotations

import difflib

from pydantic import ValidationError

from app.verb import Context, GrammarError, Intent, Verb, split_word
from app.verbs import VERBS, complaint

_BY_NAME = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}
LINE_LIMIT = 1_000_000


def find_verb(name: str) -> Verb:
    """The verb with this name or alias, in any case.

    Raises:
        GrammarError: there is none; the message names the nearest.
    """
    verb = _BY_NAME.get(name.lower())
    if verb is not None:
        return verb
    near = difflib.get_close_matches(name.lower(), _BY_NAME, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "type help for the words there are"
    raise GrammarError(f"'{name[:40]}' is no command here; {hint}")


def read_line(line: str, context: Context) -> Intent:
    """What a line of the command bar asks for.

    Raises:
        GrammarError: it cannot be understood.
    """
    verb, rest = verb_of(line)
    try:
        return verb.read(rest, context)
    except GrammarError as error:
        raise GrammarError(f"{error} · usage: {verb.usage}") from None
    except ValidationError as error:
        raise GrammarError(f"{complaint(error)} · usage: {verb.usage}") from None


def verb_of(line: str) -> tuple[Verb, str]:
    """The verb of a line, and what follows it.

    Raises:
        GrammarError: the line is empty or too long, or there is no such verb.
    """
    if len(line) > LINE_LIMIT:
        raise GrammarError(f"the line has {len(line)} characters; at most {LINE_LIMIT} are read")
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
        return [
            (verb.name + ("" if verb.usage == verb.name else " "), verb.help)
            for verb in VERBS
            if verb.name.startswith(name.lower())
        ][:limit]
    verb = _BY_NAME.get(name.lower())
    if verb is None:
        return []
    wanted = rest.lower()
    starting = [
        (f"{verb.name} {value}", about)
        for value, about in verb.choices(context)
        if value.lower().startswith(wanted)
    ]
    holding = [
        (f"{verb.name} {value}", about)
        for value, about in verb.choices(context)
        if wanted and wanted in value.lower() and not value.lower().startswith(wanted)
    ]
    return (starting + holding)[:limit]
