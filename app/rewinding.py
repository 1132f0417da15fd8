"""A rewind as it is typed, and its preview as text, as JSON and as parts of the dialog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.comparing import Change, state_changes
from app.verb import GrammarError
from engine.domain import commands as cmd
from engine.domain.text import clean_line
from engine.engine import Engine
from engine.snapshots import Restoration
from engine.steering.rewinding import Preview

SCOPES = ("both", "files", "state")
YES, DRY = "--yes", "--dry-run"
WORDS = 200
"""Characters of a line that a preview shows."""
OUTSIDE = "programs may have reached further than the files; what they did to files comes back"
LISTED = 500
"""Lines of one part that a preview shows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A rewind as it was typed."""

    place: str
    scope: str = "both"
    paths: tuple[str, ...] = ()
    yes: bool = False
    """Whether it is to be carried out, and not only shown."""


def read_rewind(rest: str) -> Asked:
    """What `rewind` is followed by: a scope, a place, paths, and whether it is meant.

    Raises:
        GrammarError: it cannot be understood.
    """
    words = rest.split()
    flags = {word for word in words if word.startswith("--")}
    if unknown := flags - {YES, DRY}:
        raise GrammarError(f"there is no {sorted(unknown)[0][:40]}; there are {YES} and {DRY}")
    words = [word for word in words if word not in flags]
    scope = words.pop(0) if words and words[0] in SCOPES else "both"
    if not words:
        raise GrammarError("where to is missing: an event such as 31, an action a7, a step s4, or -40")
    place, paths = words[0], tuple(words[1:])
    if paths and scope != "files":
        raise GrammarError(f"paths go with files only: rewind files {place} {paths[0][:40]}")
    return Asked(place, scope, paths, YES in flags and DRY not in flags)


async def preview_of(engine: Engine, agent: str, asked: Asked, here: int | None = None) -> Preview:
    """What a rewind would do.

    Raises:
        RewindError: it cannot be gone back there.
        JournalError: the journal cannot be read.
    """
    version = await engine.place_of(agent, asked.place, here)
    return await engine.rewind_preview(agent, version, asked.scope, asked.paths)


def command_of(preview: Preview) -> cmd.Rewind:
    """The command that carries a preview out."""
    return cmd.Rewind.model_validate(
        {"agent": preview.agent, "to": preview.to, "scope": preview.scope.value, "paths": preview.paths}
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a preview."""

    title: str
    lines: tuple[tuple[str, str], ...]
    """Sign and words: `+` comes back or is made, `-` goes, `~` changes, `!` cannot be undone."""
    note: str = ""


def title_of(preview: Preview) -> str:
    """Where a rewind leads, in a line."""
    moved = "" if preview.asked == preview.to else f" ({preview.asked} is in the middle of something)"
    what = {"both": "state and files", "files": "files only", "state": "state only"}[preview.scope.value]
    return f"Rewind {preview.agent} to event {preview.to}{moved}: {what}, {preview.after.events} events back"


def parts_of(preview: Preview) -> tuple[Part, ...]:
    """A preview in parts, the most important first."""
    lasting = tuple(("!", _words(line)) for line in preview.lasting[:LISTED])
    note = OUTSIDE if preview.after.outside else ""
    parts = [Part("Cannot be undone", lasting, note)]
    if preview.scope.value != "state":
        parts.append(_files(preview))
        if preview.others:
            lost = tuple(("!", _words(line)) for line in preview.others[:LISTED])
            parts.append(Part("Changed by others since, and lost", lost))
    if preview.scope.value != "files":
        for title, changes in state_changes(preview.now, preview.then):
            parts.append(Part(title, tuple(map(_line, changes[:LISTED]))))
    return tuple(parts)


def _files(preview: Preview) -> Part:
    if preview.trouble:
        return Part("Files", (("!", _words(f"cannot be brought back: {preview.trouble}")),))
    note = preview.files.note if preview.files is not None else ""
    sure = "" if preview.files is None or preview.files.exact else "NOT CERTAIN: "
    done = preview.restoration
    lines = tuple(_restored(done))[:LISTED] if done is not None else ()
    return Part("Files", lines, _words(sure + note))


def _restored(done: Restoration) -> Iterator[tuple[str, str]]:
    for sign, paths, what in (
        ("-", done.removed, "goes"),
        ("+", done.made, "directory made"),
        ("~", done.written, "written"),
        ("~", done.mode_changed, "permissions"),
    ):
        yield from ((sign, f"{_words(path)}: {what}") for path in paths)
    if done.more:
        yield "~", f"and {done.more} more"


def adopted_parts(preview: Restoration) -> tuple[Part, ...]:
    """What taking over a fork's files would do."""
    left = tuple(("!", f"{_words(one.path)}: {_words(one.why)}") for one in preview.left[:LISTED])
    return (
        Part("Files", tuple(_restored(preview))[:LISTED], "the files of now are saved first"),
        Part("Not taken over", left),
    )


def restored_json(done: Restoration | None) -> dict[str, Any]:
    """What happens to files, as JSON."""
    return {
        "written": list(done.written) if done else [],
        "made": list(done.made) if done else [],
        "removed": list(done.removed) if done else [],
        "mode_changed": list(done.mode_changed) if done else [],
        "more": done.more if done else 0,
    }


def _line(change: Change) -> tuple[str, str]:
    return change.sign, f"{change.what}: {change.text}" if change.text else change.what


def _words(text: str) -> str:
    return clean_line(text, limit=WORDS)


def text_of(title: str, parts: Sequence[Part]) -> str:
    """A preview as lines."""
    lines = [title]
    for part in parts:
        lines += ["", f"{part.title}{f' ({part.note})' if part.note else ''}"]
        lines += [f"  {sign} {words}" for sign, words in part.lines] or ["  nothing"]
    return "\n".join(lines)


def as_json(preview: Preview) -> dict[str, Any]:
    """A preview as JSON."""
    return {
        "agent": preview.agent,
        "asked": preview.asked,
        "to": preview.to,
        "scope": preview.scope.value,
        "events_back": preview.after.events,
        "files": {
            "snapshot": preview.files.snapshot if preview.files else "",
            "saved_at": preview.files.ref if preview.files else "",
            "exact": preview.files.exact if preview.files else None,
            "note": preview.files.note if preview.files else "",
            "trouble": preview.trouble,
            **restored_json(preview.restoration),
        },
        "changed_by_others": list(preview.others),
        "cannot_be_undone": list(preview.lasting),
        "changes": {
            title.lower(): [change.line for change in changes]
            for title, changes in state_changes(preview.now, preview.then)
        }
        if preview.scope.value != "files"
        else {},
    }
