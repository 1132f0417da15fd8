"""Envelopes: what an accepted plan may do without asking, proposed from its steps.

Source: spec steering §3 idea 3.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.domain.action import Undo
from engine.domain.approval import OUTSIDE, Call, Envelope
from engine.domain.plan import Op, PlanStep
from engine.domain.ports import CommandSpec
from engine.steering.calls import make_call, path_of
from engine.steering.globs import fits, fits_path, joined, literal, parted
from engine.steering.rules import PATHS_LIMIT, TEXT_LIMIT, RuleError, quoted

LISTS = ("commands", "paths", "programs", "hosts")
SpecOf = Callable[[str, str], CommandSpec | None]
"""Describes a tool's command."""


def leaves(envelope: Envelope, call: Call) -> tuple[str, ...]:
    """Which parts of an envelope a call leaves, in words; empty when it stays within."""
    return tuple(_leaves(envelope, call))


def _leaves(envelope: Envelope, call: Call) -> Iterator[str]:
    if call.goal != envelope.goal and not envelope.children:
        yield f"{call.goal} is another goal below {envelope.goal}"
    if envelope.spend_usd is not None and call.cost_usd > envelope.spend_usd:
        yield f"${call.cost_usd:.2f} were spent, more than ${envelope.spend_usd:g}"
    for host in call.hosts:
        if not any(fits(pattern, host) for pattern in envelope.hosts):
            yield "it reaches the network" if host == "?" else f"it reaches {host}"
    if not call.changes and call.undo is Undo.NONE:
        return
    if not any(fits(pattern, call.name) for pattern in envelope.commands):
        yield f"{call.command} is none of its commands"
    if call.line and not any(fits(pattern, call.line) for pattern in envelope.programs):
        yield f"the program {call.line[:200]} is none of its programs"
    for path in call.paths:
        if not any(fits_path(pattern, path) for pattern in envelope.paths):
            yield f"{path.removeprefix(f'{OUTSIDE}:')} is outside of its paths"
    if call.undo is Undo.IRREVERSIBLE and not envelope.irreversible:
        yield "it cannot be undone"


def propose(goal: str, steps: Sequence[PlanStep], spec_of: SpecOf, cwd: str = ".") -> Envelope:
    """The narrowest envelope that covers what is left of a plan.

    Args:
        goal: the plan's goal.
        steps: the plan's steps.
        spec_of: describes commands.
        cwd: the directory in which the next step runs.
    """
    found: dict[str, dict[str, None]] = {name: {} for name in LISTS}
    irreversible = children = False
    for step in steps:
        if step.status.terminal:
            continue
        children = children or step.op is Op.ACHIEVE
        spec = spec_of(step.tool, step.command) if step.op is Op.ACT else None
        if spec is None:
            continue
        call = make_call(spec, step.tool, step.args, cwd=cwd)
        if call.command == "cd" and call.paths and not call.paths[0].startswith(f"{OUTSIDE}:"):
            cwd = path_of(str(step.args.get("path", ".")), cwd)
        found["hosts"] |= dict.fromkeys("*" if host == "?" else literal(host) for host in call.hosts)
        if not call.changes and call.undo is Undo.NONE:
            continue
        irreversible = irreversible or call.undo is Undo.IRREVERSIBLE
        found["commands"][literal(call.name)] = None
        found["paths"] |= dict.fromkeys(literal(path) for path in call.paths)
        if call.line:
            found["programs"][literal(call.line)] = None
    commands, paths, programs, hosts = (tuple(found[name]) for name in LISTS)
    return Envelope(goal, commands, paths, programs, hosts, irreversible=irreversible, children=children)


# ------------------------------------------------------------------ written and read


def envelope_text(envelope: Envelope) -> str:
    """The envelope on a line, as `given_envelope` takes it."""
    return " ".join(envelope_parts(envelope))


def envelope_parts(envelope: Envelope) -> list[str]:
    """The parts of an envelope that say something, each as it is written."""
    words = [f"{name}={quoted(joined(values, '|'))}" for name in LISTS if (values := getattr(envelope, name))]
    if envelope.spend_usd is not None:
        words.append(f"spend={envelope.spend_usd:g}")
    words += [f"{name}={'yes' if getattr(envelope, name) else 'no'}" for name in ("irreversible", "children")]
    return words


def given_envelope(text: str, base: Envelope) -> dict[str, Any]:
    """The parts of an envelope that a line such as `paths=src/**|tests/** hosts=none` gives.

    Raises:
        RuleError: it cannot be read; the message says what is wrong.
    """
    form = "commands=…|… paths=…|… programs=…|… hosts=…|… spend=USD irreversible=yes|no children=yes|no"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RuleError(f"the envelope: {error}; it is written so: {form}") from None
    given: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise RuleError(f"'{word[:60]}' is no NAME=VALUE; an envelope is written so: {form}")
        given[name] = value
        if name in LISTS:
            given[name] = [] if value == "none" else parted(value, "|")
        elif name in ("irreversible", "children"):
            given[name] = {"yes": True, "no": False}.get(value, value)
        elif name == "spend":
            given[name] = _amount(value)
    envelope_of(given, base)
    return given


def envelope_of(given: Mapping[str, Any], base: Envelope) -> Envelope:
    """An envelope from an object of JSON; what it leaves out is the base's.

    Raises:
        RuleError: something in it is wrong.
    """
    known = (*LISTS, "spend", "irreversible", "children")
    if unknown := sorted(str(name) for name in given if name not in known):
        raise RuleError(f"an envelope has no '{unknown[0][:40]}'; it has: {', '.join(known)}")
    changes: dict[str, Any] = {}
    for name in LISTS:
        if name in given:
            changes[name] = _patterns(given[name], name)
    if any(path.startswith("/") or ".." in path.split("/") for path in changes.get("paths", ())):
        raise RuleError("paths of an envelope are globs beneath the sandbox root, without a leading / and ..")
    for name in ("irreversible", "children"):
        if name in given:
            if not isinstance(given[name], bool):
                raise RuleError(f"{name} is yes or no, not {given[name]!r}")
            changes[name] = given[name]
    if "spend" in given:
        spend = given["spend"]
        fine = spend is None or (
            not isinstance(spend, bool) and isinstance(spend, int | float) and 0 <= spend < 1e9
        )
        if not fine:
            raise RuleError(f"spend is an amount in US dollars or none, not {spend!r}")
        changes["spend_usd"] = spend
    return replace(base, **changes)


def _patterns(given: object, name: str) -> tuple[str, ...]:
    good = isinstance(given, list | tuple) and len(given) <= 10 * PATHS_LIMIT
    texts: Iterable[object] = given if isinstance(given, list | tuple) else ()
    if not good or not all(isinstance(one, str) and 0 < len(one) <= TEXT_LIMIT for one in texts):
        raise RuleError(f"{name} is a list of globs, or none")
    return tuple(str(one) for one in texts)


def _amount(value: str) -> Any:
    if value == "none":
        return None
    try:
        return float(value)
    except ValueError:
        return value
