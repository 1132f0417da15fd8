"""Waiting, events at a time, and the date and time that the host says it is."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from engine.bdi import waiting
from engine.bdi.actions import Call
from engine.bdi.alarms import Appointment, set_alarm
from engine.bdi.instructions import free_cells, fresh_copy
from engine.bdi.intentions import Event, Waiting
from engine.bdi.library.plans import trigger_of
from engine.bdi.library.registry import internal
from engine.bdi.terms import deref


@internal(".wait", 1, 2)
def wait(call: Call) -> bool:
    """`.wait(milliseconds)`, or `.wait({+event})` with or without milliseconds after which it fails.

    Waiting for a formula is an instruction of its own, because it asks the formula again and again.
    """
    found = deref(call.args[0])
    if isinstance(found, int | float):
        waiting.begin(call.agent, call.step(), Waiting.TIME, found, limit=found)
        return True
    sign, literal = trigger_of(call, 0)
    limit = call.number(1) if len(call) == 2 else None
    waiting.begin(call.agent, call.step(), Waiting.EVENT, literal, limit=limit, reason=sign)
    return True


@internal(".at", 2)
def at(call: Call) -> bool:
    """`.at("now + 3 minutes", { +!g })`: raise an event then; a bare number is milliseconds from now."""
    found = deref(call.args[0])
    delay = call.number(0) if isinstance(found, int | float) else _delay(call)
    sign, literal = trigger_of(call, 1)
    if sign not in ("+!", "+?", "+", "-"):
        raise call.wrong(1, "an event of a goal that comes or of a belief")
    agent = call.agent
    event = Event(sign, copy := fresh_copy(literal), None, free_cells(copy))
    set_alarm(agent, agent.now + max(0.0, float(delay)), Appointment(agent.number(), event))
    return True


_WHEN = re.compile(r"now(?:\s*\+\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]*))?", re.ASCII)
_UNITS = {
    **dict.fromkeys(("", "ms"), 1.0),
    **dict.fromkeys(("s", "second", "seconds"), 1e3),
    **dict.fromkeys(("m", "minute", "minutes"), 6e4),
    **dict.fromkeys(("h", "hour", "hours"), 3.6e6),
    **dict.fromkeys(("d", "day", "days"), 8.64e7),
}
"""Milliseconds."""


def _delay(call: Call) -> float:
    found = _WHEN.fullmatch(call.text(0).strip())
    if found is None or (found["unit"] or "") not in _UNITS:
        raise call.wrong(0, 'a time such as "now + 3 minutes"')
    delay = float(found["number"] or 0) * _UNITS[found["unit"] or ""]
    if math.isinf(delay):
        raise call.wrong(0, "a time that can be counted in milliseconds")
    return delay


def _clock(call: Call) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=call.agent.epoch + call.agent.now)


@internal(".date", 3)
def date(call: Call) -> bool:
    """Year, month and day, UTC."""
    now = _clock(call)
    return call.unify(0, now.year) and call.unify(1, now.month) and call.unify(2, now.day)


@internal(".time", 3)
def time(call: Call) -> bool:
    """Hour, minute and second, UTC."""
    now = _clock(call)
    return call.unify(0, now.hour) and call.unify(1, now.minute) and call.unify(2, now.second)
