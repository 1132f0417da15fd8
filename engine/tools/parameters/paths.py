"""Arguments that are paths, against what is in the workspace.

Only a path that has to be there and is not can be wrong for certain, and only where it can mean one thing.
What it is changed into is always something that was found beneath the root.

When two names are the same but for case, separators or extension.

Components that a goal names, such as “the summarization tool”, and the files that they are.

The seed looked for four patterns and sent every hit to one directory; here each name is
found, and resolved to what is in the workspace.

Looking at the workspace for what arguments may mean; blocking.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.core.actions import Correction, Entry, ErrorCode, Survey, value_text
from engine.core.ports import CommandSpec
from engine.sandbox.file_search import walk
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError, name_text
from engine.tools.registry import Problem
from engine.value import dataclass

_SEPARATORS = re.compile(r"[-_ ]+")
_SUFFIX = re.compile(r"_(?:tool|agent)$")
_KINDS = ({"yml", "yaml"}, {"jpg", "jpeg"}, {"htm", "html"}, {"txt", "text"}, {"md", "markdown"})
"""Extensions that are two spellings of one."""


def folded(text: str) -> str:
    """A text whose case, and whose kind of separator within words and between directories, no longer tell."""
    return _SEPARATORS.sub("_", unicodedata.normalize("NFC", text).replace("\\", "/").casefold())


def split_name(path: str) -> tuple[str, str]:
    """A path without its extension, and the extension without its dot; a name may begin with a dot."""
    root, extension = posixpath.splitext(path)
    return root, extension[1:]


def bare(name: str) -> str:
    """A component's folded name without `_tool` or `_agent` at its end."""
    return _SUFFIX.sub("", folded(name))


def name_keys(path: str) -> frozenset[str]:
    """The folded names by which a path may be meant: its last name, whole, without extension, and bare."""
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem = split_name(name)[0]
    return frozenset({folded(name), folded(stem), bare(stem)})


def place(cwd: str, path: str) -> str | None:
    """Where a path leads, relative to the root and by words alone; None when it leaves the root."""
    path = path.replace("\\", "/")
    if not path.strip() or "\0" in path or path.startswith("/"):
        return None
    joined = posixpath.normpath(posixpath.join(cwd, path))
    return None if joined == ".." or joined.startswith("../") else joined


def is_near_match(path: str, there: str) -> bool:
    """Whether two paths from the root differ in nothing but case, separators and extension.

    One extension must be missing, or both be spellings of one: a file of another kind is another file.
    """
    if folded(path) == folded(there):
        return True
    (root, extension), (other, other_extension) = split_name(path), split_name(there)
    if folded(root) != folded(other) or posixpath.basename(root).startswith("."):
        return False
    pair = {extension.casefold(), other_extension.casefold()}
    return "" in pair or any(pair <= kind for kind in _KINDS)


def differences(path: str, there: str) -> str:
    """In what two near paths differ, in words."""
    (root, extension), (other, other_extension) = split_name(path), split_name(there)
    result = []
    if extension.casefold() != other_extension.casefold():
        result.append("extension")
    else:
        root, other = path, there
    if root.casefold() != other.casefold():
        result.append("separators")
    if _SEPARATORS.sub("_", root.replace("\\", "/")) != _SEPARATORS.sub("_", other):
        result.append("case")
    return " and ".join(result)


_PATTERNS = (
    re.compile(r"(?<![\w-])(?P<name>\w+_(?:tool|agent))\b", re.I),
    re.compile(r"(?<![\w-])(?P<name>[\w-]+)\s+(?P<kind>tool|agent)\b", re.I),
    re.compile(r"\b(?P<kind>tool|agent)\s+(?:for|called|named)\s+(?:the\s+)?(?P<name>[\w-]+)", re.I),
)
_NO_NAMES = frozenset(
    {
        *("a", "an", "the", "this", "that", "each", "every", "any", "all", "some", "no", "one", "which"),
        *("my", "our", "your", "its", "new", "other", "another", "same", "current", "and", "or"),
    }
)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.I)
GOAL_LIMIT = 8_000
"""Characters of a goal that are read."""


def references(goal: str) -> tuple[str, ...]:
    """The components that a goal names, as `summarization_tool`, in the order of the patterns."""
    result: dict[str, None] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(goal[:GOAL_LIMIT]):
            parts = match.groupdict()
            name = folded(parts["name"])
            if name in _NO_NAMES:
                continue
            kind = f"_{parts['kind'].casefold()}" if "kind" in parts else ""
            result[name if name.endswith(kind) else name + kind] = None
    return tuple(result)


def is_name(text: str) -> bool:
    """Whether a text can be a component's name: words without directories and extension."""
    return bool(re.fullmatch(r"[\w -]{1,200}", text)) and bool(text.strip())


def entries_named(name: str, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """What has a component's name, whole or else without `_tool` and `_agent`."""
    name = _ARTICLE.sub("", name.strip())
    known = [(entry, split_name(entry.path.rpartition("/")[2])[0]) for entry in entries]
    whole = tuple(entry for entry, stem in known if folded(stem) == folded(name))
    return whole or tuple(entry for entry, stem in known if bare(stem) == bare(name))


def component_name_keys(name: str) -> frozenset[str]:
    """The folded names under which a component may lie in the workspace."""
    return name_keys(_ARTICLE.sub("", name.strip()))


_PLACEHOLDER = re.compile(r"(?:\./|/)?path/to/(?=.)", re.I)
READINGS = 5
"""Readings of one path that are named."""


@dataclass(frozen=True, slots=True)
class PathQuestion:
    """Whether what an argument names is there."""

    argument: str
    path: str
    exists: str
    """See `Parameter.exists`; empty for a placeholder, which is wrong unless such a directory is there."""


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """What is to be looked up in the workspace for one call."""

    paths: tuple[PathQuestion, ...] = ()
    names: tuple[str, ...] = ()
    """Components that the goal names."""
    for_missing: bool = False
    """True when a missing argument may be one of these components."""

    def __bool__(self) -> bool:
        """Whether there is anything to look up."""
        return bool(self.paths) or self.for_missing

    def handles(self) -> frozenset[str]:
        """The folded names of everything that may be meant."""
        given = [question.path for question in self.paths]
        keys = (*map(name_keys, given), *map(component_name_keys, (*given, *self.names)))
        return frozenset().union(*keys)


def placeholder(path: str) -> str:
    """What stands behind `path/to/` in a path; empty when the path is no such placeholder."""
    result = _PLACEHOLDER.match(path.replace("\\", "/"))
    return path[result.end() :] if result else ""


def questions(spec: CommandSpec, args: Mapping[str, Any], goal: str) -> tuple[PathQuestion, ...]:
    """Which arguments have to be compared with the workspace."""
    result = []
    for parameter in spec.parameters:
        value = args.get(parameter.name)
        if parameter.kind != "path" or not isinstance(value, str) or not value:
            continue
        # Who says `path/to/` in the goal means it.
        stands_in = bool(placeholder(value)) and value not in goal
        if parameter.exists or stands_in:
            result.append(PathQuestion(parameter.name, value, parameter.exists))
    return tuple(result)


def entries_of_kind(entries: Iterable[Entry], exists: str) -> tuple[Entry, ...]:
    """The entries of a kind: `file`, `directory` or `any`."""
    return tuple(entry for entry in entries if exists == "any" or entry.directory == (exists == "directory"))


def correct_path(
    command: str, question: PathQuestion, cwd: str, survey: Survey
) -> Correction | Problem | str:
    """What a path that is not there can mean: one thing, several, or in words why nothing certain."""
    entries = entries_of_kind(survey.entries, question.exists) if question.exists else ()
    readings, rule, why = _readings(question, cwd, entries)
    if readings and not survey.whole:
        path = value_text(question.path)
        return f"{path} is not there; the workspace is too large to be sure what else it means"
    if len(readings) == 1:
        after = from_directory(cwd, readings[0])
        why = why or _why_near(question, cwd, after)
        return Correction(question.argument, question.path, after, rule, why)
    if readings:
        text = f"{command}: {question.argument}: {value_text(question.path)} is not there; it can mean"
        return Problem(ErrorCode.NOT_FOUND, f"{text} {one_of(cwd, readings)}: say which.", question.argument)
    if placeholder(question.path):
        place = f"{command}: {question.argument}: {value_text(question.path)}"
        text = f"{place} stands in for a path: say which it is."
        return Problem(ErrorCode.BAD_ARGUMENTS, text, question.argument)
    return f"{value_text(question.path)} is not there, and nothing near it"


def _readings(
    question: PathQuestion, cwd: str, entries: tuple[Entry, ...]
) -> tuple[tuple[Entry, ...], str, str]:
    """What a path can mean, by which rule, and why; the first rule that finds anything decides."""
    target = place(cwd, question.path)
    if target is not None and (
        hits := tuple(entry for entry in entries if is_near_match(target, entry.path))
    ):
        return hits, "near path", ""
    if is_name(question.path) and (hits := entries_named(question.path, entries)):
        return hits, "component", "a component's name is no path, and only this bears it"
    name = placeholder(question.path)
    if name and "/" not in name:
        named = tuple(entry for entry in entries if is_near_match(name, entry.path.rpartition("/")[2]))
        hits = named or (entries_named(name, entries) if is_name(name) else ())
        why = f"{value_text(question.path)} stands in for a path, and only this bears the name"
        return hits, "placeholder", why
    return (), "", ""


def _why_near(question: PathQuestion, cwd: str, after: str) -> str:
    target, there = place(cwd, question.path) or "", place(cwd, after) or ""
    if "\\" in question.path:
        target = target.replace("/", "\\")
    return f"it is not there, and only this differs in nothing but {differences(target, there)}"


def from_directory(cwd: str, entry: Entry) -> str:
    """An entry as it is named from the working directory."""
    return posixpath.relpath(entry.path, cwd)


def one_of(cwd: str, readings: tuple[Entry, ...]) -> str:
    """Several entries in words."""
    named = [value_text(from_directory(cwd, entry)) for entry in readings[:READINGS]]
    more = f" or {len(readings) - READINGS} more" if len(readings) > READINGS else ""
    return " or ".join(named) + more


SEARCHED = 20_000
"""Files and directories looked at for one call."""
KEPT = 100
"""Entries of a like name that are kept; with more of them nothing is certain."""


def survey(files: SandboxFiles, cwd: str, enquiry: LookupRequest) -> Survey:
    """Which of the paths are not there, and what is there under a like name.

    The tree is searched only when something is not there. What cannot be looked at counts as being there:
    the tool itself says what is wrong with it.
    """
    missing = tuple(each.argument for each in enquiry.paths if not _is_there(files, cwd, each))
    if not missing and not enquiry.for_missing:
        return Survey()
    target = enquiry.handles()
    result: list[Entry] = []
    for count, (path, is_directory) in enumerate(_below(files)):
        if count == SEARCHED or len(result) == KEPT:
            return Survey(missing, tuple(result), whole=False)
        entry = Entry(name_text(path), is_directory)
        if not target.isdisjoint(name_keys(entry.path)):
            result.append(entry)
    return Survey(missing, tuple(result))


def _is_there(files: SandboxFiles, cwd: str, question: PathQuestion) -> bool:
    try:
        path = files.relative(question.path, cwd)
        if not question.exists:
            path = path.rpartition("/")[0] or "."
        return path == "." or files.entry(path) is not None
    except PathError as refused:
        return not (refused.code is ErrorCode.OUTSIDE_ROOT and placeholder(question.path))


def _below(files: SandboxFiles) -> Iterator[tuple[str, bool]]:
    try:
        yield from walk(files)
    except PathError:
        return  # the root itself cannot be read, which the tool will say
