"""What the operator's time at the shell changed, as offers of beliefs for the agent.

A pure function of what the shell's action answered, of the difference between two workspace snapshots, and of
the session in which the agent stands. Source: issue 3, steering S3 and idea 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from engine.domain.action import SandboxSession
from engine.domain.session import OfferedBelief, ReturnedShell
from engine.domain.text import clean_line
from engine.journal import events as ev
from engine.snapshots import Changes

LISTED = 50
"""Paths, names or lines of one offer; how many more there are is said."""
TEXT_LIMIT = 200


def offer_changes(
    shell: ReturnedShell, changes: Changes | str, session: SandboxSession
) -> ev.ChangesOffered | None:
    """What is put to the operator, or None when nothing changed and nothing was said.

    Args:
        shell: the operator's shell that has ended.
        changes: what happened to files meanwhile, or why that is not known.
        session: where the agent would go on if nothing is settled.
    """
    answer = shell.answer
    offers = [*_files(changes), *_variables(answer), *_processes(answer), *_note(answer)]
    ended = _ended(answer, session)
    if not offers and ended == session:
        return None
    return ev.ChangesOffered(
        action=shell.action,
        offers=(*offers, *_commands(answer)),
        session=ended if ended != session else None,
    )


def _files(changes: Changes | str) -> Iterator[OfferedBelief]:
    if isinstance(changes, str):
        yield _offer("files.unknown", changes, f"which files changed is not known: {changes}")
        return
    kinds = {
        "added": changes.added,
        "changed": sorted({*changes.changed, *changes.mode_changed}),
        "removed": changes.removed,
    }
    for kind, paths in kinds.items():
        if paths:
            yield _listed(f"files.{kind}", paths, f"{_count(paths, 'file')} {kind}")
    if changes.more:
        yield _offer("files.more", changes.more, f"{changes.more:,} more files that are not listed")


def _variables(answer: dict[str, Any]) -> Iterator[OfferedBelief]:
    variables = answer.get("variables")
    if not isinstance(variables, dict):
        return
    named = {kind: _texts(variables.get(kind)) for kind in ("added", "changed", "removed")}
    words = [f"{kind}: {', '.join(names)}" for kind, names in named.items() if names]
    if words:
        value = {kind: names[:LISTED] for kind, names in named.items() if names}
        yield _offer(
            "operator.variables", value, f"variables of the shell, which are gone with it, {'; '.join(words)}"
        )


def _processes(answer: dict[str, Any]) -> Iterator[OfferedBelief]:
    processes = _texts(answer.get("processes"))
    if processes:
        yield _listed("operator.processes", processes, "ended with the shell")


def _note(answer: dict[str, Any]) -> Iterator[OfferedBelief]:
    if note := str(answer.get("note") or ""):
        yield _offer("operator.note", note, f"your note: {note}")


def _commands(answer: dict[str, Any]) -> Iterator[OfferedBelief]:
    """What was typed matters only beside something that it changed."""
    commands = _texts(answer.get("commands"))
    if commands:
        newest = commands[-LISTED:]
        yield _offer("operator.commands", newest, f"{_count(commands, 'command')}: {'; '.join(newest)}")


def _ended(answer: dict[str, Any], session: SandboxSession) -> SandboxSession:
    """Where the shell stood at its end; where the agent stands when that is not known."""
    cwd, venv = answer.get("cwd"), answer.get("venv")
    if not isinstance(cwd, str) or not isinstance(venv, str | None):
        return session
    return replace(session, cwd=cwd, venv=venv)


def _texts(value: object) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _listed(key: str, entries: Iterable[str], what: str) -> OfferedBelief:
    names = list(entries)
    more = len(names) - LISTED
    value = [*names[:LISTED], f"and {more:,} more"] if more > 0 else names
    return _offer(key, value, f"{what}: {', '.join(value)}")


def _offer(key: str, value: Any, text: str) -> OfferedBelief:
    return OfferedBelief(key, value, clean_line(text, limit=TEXT_LIMIT))


def _count(things: Any, what: str) -> str:
    return f"{len(things):,} {what}{'' if len(things) == 1 else 's'}"
