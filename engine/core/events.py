"""All kinds of events under one name, for code that handles many of them.

An event is a pydantic model in the module of its noun (`engine/core/goals.py`, `plan.py`, …), named after
what happened. Its `kind` registers it; nothing has to be listed here unless the noun is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import ValidationError

from engine.core import campaigns, crew, memory_events  # noqa: F401  (they register their kinds)
from engine.core.access import *
from engine.core.actions import *
from engine.core.agents import *
from engine.core.approvals import *
from engine.core.beliefs import *
from engine.core.breakpoints import *
from engine.core.budgets import *
from engine.core.control import *
from engine.core.goals import *
from engine.core.journal import Event, JournalError
from engine.core.journal import Payload as Payload
from engine.core.metacognition import *
from engine.core.notes import *
from engine.core.plan import *
from engine.core.reasoner import *
from engine.core.recovery import *
from engine.core.restored import *
from engine.core.rewind import *
from engine.core.sandbox import *
from engine.core.soundness import *
from engine.core.thinking import *
from engine.value import fields_of


def _subclasses(parent: type[Payload]) -> Iterable[type[Payload]]:
    for child in parent.__subclasses__():
        yield child
        yield from _subclasses(child)


@cache
def kinds() -> dict[str, type[Payload]]:
    """Every payload type by its kind."""
    return {child.kind: child for child in _subclasses(Payload)}


def payload_of(event: Event) -> Payload:
    """The typed payload of a stored event.

    Raises:
        JournalError: this version does not know the kind, or the stored payload does not fit it.
    """
    try:
        return kinds()[event.kind].model_validate(json.loads(event.body))
    except (KeyError, ValidationError, json.JSONDecodeError) as error:
        why = "is of no known kind" if isinstance(error, KeyError) else "does not fit its kind"
        raise JournalError(
            f"Event {event.ref} ({event.kind}) {why}: a newer Pilothouse wrote it, or it was changed. "
            "Check with: pilothouse sessions verify"
        ) from error


def as_dict(event: Event) -> dict[str, Any]:
    """The event as a JSON-ready object, for `--events` and exports."""
    head = fields_of(event, "seq", "ref", "at", "tick", "actor")
    payload = json.loads(event.body)
    return head | {"causes": list(event.causes), "kind": event.kind, "payload": payload, "hash": event.hash}
