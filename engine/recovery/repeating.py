"""Whether a call may be made again where nobody knows if it took effect.

A connection that breaks says nothing about the call: it may have been carried out, and its answer lost. A
read does no harm twice. A write does, unless it carries a key by which its receiver knows it again (spec
master-loop-and-memory §3.4, §3.12, §3.16 W26).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.failure import FailureKind
from engine.domain.ports import CommandSpec

KEY = "idempotency_key"
"""The argument by which a write is known again."""


def lost_on_the_way(kind: FailureKind) -> bool:
    """Whether a failure of this kind leaves open if the call took effect.

    A program that ran and ended, and an endpoint that asks for patience, have answered.
    """
    return kind is FailureKind.NETWORK_ERROR


def may_repeat(spec: CommandSpec, args: Mapping[str, Any]) -> bool:
    """Whether a call does no harm when it is made a second time.

    Args:
        spec: what the command is.
        args: its arguments, as they were sent.
    """
    return not (spec.mutates or spec.writes) or bool(args.get(KEY))
