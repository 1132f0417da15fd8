"""How names, priorities and settings in lines about a crew are read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any

from app.verb import Context, GrammarError
from engine.domain.strict_json import StrictJsonError, read_json

_SETTING = re.compile(r"""(?<!\S)([a-z]+)=("[^"]*"|'[^']*'|[^\s"']+)\Z""", re.I)
_UNREAD = re.compile(r"""(?<!\S)(given|sources)=["'{\[][^\n]*\Z""", re.I)
STEP_MODE = "step_mode"
BROUGHT = ("given", "sources")
"""What is given with work, behind its task."""
STEP = "step"
"""Whether a debate or a pipeline halts after each part, from the beginning."""
OF_DEBATES = ("for", "against", "rounds", "judge", "agent", STEP, *BROUGHT)


def near(wanted: str, known: Collection[str]) -> str:
    """The three ids that are most like one, in words."""
    found = difflib.get_close_matches(wanted, list(known), n=3, cutoff=0.0)
    return f"the nearest: {', '.join(found)}" if found else "there is none yet"


def agent_in(name: str, context: Context) -> str:
    """The id of a registered agent, in any case."""
    crew, wanted = context.crew, name.lower()
    if crew is not None and wanted not in crew.agents:
        raise GrammarError(f"no agent '{name[:40]}' is registered; {near(wanted, crew.agents)}")
    return wanted


def named_in(what: str, name: str, known: Mapping[str, Any] | None) -> str:
    """The id that begins like this; None for `known` leaves it to the crew."""
    if known is None or name in known:
        return name
    found = [one for one in known if one.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise GrammarError(f"'{name[:40]}' begins several: {', '.join(found[:3])}")
    raise GrammarError(f"there is no {what} '{name[:40]}'; {near(name, known)}")


def handoff_in(name: str, context: Context) -> str:
    """The id of a handoff, by a unique beginning."""
    return named_in("handoff", name, context.crew.handoffs if context.crew is not None else None)


def priority_before(rest: str) -> tuple[int, str]:
    """The priority before a task, `!1` to `!3`, and the rest."""
    match = re.match(r"!([1-3])\s+(.*)", rest, re.S)
    if match is None and rest.startswith("!"):
        raise GrammarError("priorities are !1 normal, !2 high, !3 urgent")
    return (int(match[1]), match[2]) if match else (1, rest)


def task_in(rest: str) -> str:
    """What is left of a line as the task, without quotes around all of it."""
    task = (
        rest[1:-1].strip()
        if len(rest) > 1 and rest[0] in "\"'" and rest.find(rest[0], 1) == len(rest) - 1
        else rest
    )
    if not task:
        raise GrammarError("the task is missing")
    return task


def settings_behind(rest: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """A line without the settings behind it, `name=value` or `name="many words"`, and these."""
    found: dict[str, str] = {}
    rest = rest.strip()
    while (match := _SETTING.search(rest)) is not None and match[1].lower() in names:
        value = match[2]
        found.setdefault(match[1].lower(), value[1:-1] if value[0] in "\"'" else value)
        rest = rest[: match.start()].rstrip()
    if (unread := _UNREAD.search(rest)) is not None:
        name = unread[1].lower()
        raise GrammarError(f"{name}= cannot be read: put its value in quotes, {name}='…' or {name}=\"…\"")
    return rest, found


def brought(found: Mapping[str, str]) -> dict[str, Any]:
    """What is given with work, as fields of its command: JSON where it looks like it, else the text."""
    fields: dict[str, Any] = {}
    if given := found.get("given", "").strip():
        fields["given"] = given
        if given[0] in "{[":
            try:
                fields["given"] = read_json(given)
            except StrictJsonError as error:
                raise GrammarError(f"given= looks like JSON and is none: {error}") from None
    if "sources" in found:
        names = tuple(dict.fromkeys(filter(None, map(str.strip, found["sources"].split(",")))))
        if not names:
            raise GrammarError("sources= names files of the sandbox or handoffs: sources=a.md,h-12")
        fields["sources"] = names
    if found.get(STEP, "off") not in ("on", "off"):
        raise GrammarError("step= is on or off")
    if found.get(STEP) == "on":
        fields["metadata"] = {STEP_MODE: True}
    return fields
