"""Waiting, and the date and time that the host says it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.bdi import waiting
from engine.bdi.actions import Call
from engine.bdi.intentions import Waiting
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
