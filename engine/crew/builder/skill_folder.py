"""Reads the files of a skill's folder, and looks through its body as Markdown.

Files are read by descriptors: nothing outside is touched, no link is followed, and the bytes that are hashed
are the bytes that are kept, so that nothing can change them in between.

Blocks (headings, fenced code, comments) are found by markdown-it, without its inline parser, which takes
minutes over hostile lines; which headings and list items are the steps of a workflow is ours.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from engine.crew.builder.findings import Findings
from engine.value import dataclass, field

_BLOCKS = MarkdownIt("commonmark", {"maxNesting": 200})
_BLOCKS.core.ruler.enableOnly(["block"])
_KEYWORD_STEP = re.compile(
    r"\W*(Phase|Stage|Step|Question|Part)\s+(\d{1,3})(?![.\d])\s*[:.)\-–—|]*\s*(.*)", re.I
)
_NUMBER_STEP = re.compile(r"(\d{1,3})[.)](?!\d)\s+(\S.*)")
_LISTED_STEP = re.compile(r"( {0,3})(\d{1,3})[.)][ \t]+(\S.*)")
_PROCESS = re.compile(
    r"\b(workflow|process|procedure|steps?|pattern|methodology|application|how to use)\b", re.I
)
_NO_PROCESS = re.compile(
    r"\b(pitfalls?|anti-?patterns?|examples?|references?|when (not )?to (use|apply)|troubleshooting)\b", re.I
)
_LIST_LEVEL = 7
_LONGEST_HEADING, _LONGEST_LINE = 1_000, 5_000
"""Characters of lines that are looked at for these; patterns would take long over longer ones."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with all that stands under it."""

    level: int
    """1 to 6."""
    title: str
    line: int
    """In the body, from 1."""
    text: str
    """To the next heading of the same or a higher level, sub-headings included."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a workflow."""

    number: int
    title: str
    line: int
    level: int
    """The heading's; 7 for an item of a list."""
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A body, looked through once."""

    sections: tuple[Section, ...]
    steps: tuple[Step, ...]


def parse_markdown(text: str) -> Document:
    """Look through a body."""
    lines = text.replace("\r\n", "\n").split("\n")
    plain, heads = list(lines), []
    # A line that is too long to be markup is text, so that no nesting in it hides what follows.
    tokens = _BLOCKS.parse("\n".join(line if len(line) <= _LONGEST_LINE else "text" for line in lines))
    for at, token in enumerate(tokens):
        begin, end = token.map or (0, 0)
        comment = token.type == "html_block" and token.content.lstrip().startswith("<!--")
        if comment or token.type == "fence":
            plain[begin:end] = [""] * (end - begin)
        elif token.type == "heading_open" and not token.level:
            title = " ".join(tokens[at + 1].content.split("\n"))
            if len(title) <= _LONGEST_HEADING:
                heads.append(_Head(begin, end, int(token.tag[1:]), _title(title)))
    sections = tuple(_sections(lines, heads))
    return Document(sections, _steps(sections, plain))


class _Head(NamedTuple):
    """A heading: its lines from 0, its level and its title."""

    begin: int
    end: int
    level: int
    title: str


def _sections(lines: list[str], heads: list[_Head]) -> Iterator[Section]:
    ends = [len(lines)] * len(heads)
    open_: list[int] = []
    for index, head in enumerate(heads):
        while open_ and heads[open_[-1]].level >= head.level:
            ends[open_.pop()] = head.begin
        open_.append(index)
    for head, end in zip(heads, ends, strict=True):
        yield Section(head.level, head.title, head.begin + 1, "\n".join(lines[head.end : end]).strip("\n"))


def _title(text: str) -> str:
    return re.sub(r"[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}", r"\1", text).strip()


def _steps(sections: tuple[Section, ...], plain: list[str]) -> tuple[Step, ...]:
    """Headings with a keyword, else numbered ones, else a numbered list, of a workflow; the topmost only."""
    keyed: list[Step] = []
    numbered: list[Step] = []
    listed: list[Step] = []
    above: list[Section] = []
    starts = {section.line - 1 for section in sections}
    for section in sections:
        while above and above[-1].level >= section.level:
            above.pop()
        titles = [section_above.title for section_above in above]
        above.append(section)
        if any(_NO_PROCESS.search(title) for title in titles):
            continue
        if match_ := _KEYWORD_STEP.fullmatch(section.title):
            title = match_[3].strip() or match_[0].strip()
            keyed.append(Step(int(match_[2]), title, section.line, section.level, section.text))
            continue
        if _NO_PROCESS.search(section.title):
            continue
        process = any(_PROCESS.search(title) for title in titles)
        if process and (match_ := _NUMBER_STEP.fullmatch(section.title)):
            numbered.append(Step(int(match_[1]), match_[2], section.line, section.level, section.text))
        elif not listed and _PROCESS.search(section.title):
            listed = _listed(section, plain, starts)
    return _topmost(keyed or numbered or listed)


def _topmost(steps: list[Step]) -> tuple[Step, ...]:
    top = min((step.level for step in steps), default=0)
    return tuple(step for step in steps if step.level == top)


def _listed(section: Section, plain: list[str], heads: Container[int]) -> list[Step]:
    """The items of the first numbered list right under a heading; what is indented belongs to its item."""
    steps: list[Step] = []
    edge = 3
    for at in range(section.line, len(plain)):
        line = plain[at]
        if at in heads:
            break
        if (match_ := _LISTED_STEP.fullmatch(line)) and len(match_[1]) <= edge:
            if int(match_[2]) == 1 and len(steps) > 1:
                break
            edge = len(match_[1]) + 1
            steps.append(Step(int(match_[2]), _title(match_[3]), at + 1, _LIST_LEVEL, match_[3]))
        elif steps and line.strip():
            last = steps[-1]
            steps[-1] = Step(last.number, last.title, last.line, last.level, f"{last.text}\n{line.strip()}")
    return steps if len(steps) > 1 else []


MOST_FILES = 500
MOST_BYTES = 20 * 1024 * 1024
MOST_DEPTH = 16
SKILL_FILES = ("SKILL.md", "skill.md")
LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".DS_Store"})
"""Never part of a skill."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """A skill's files, in memory."""

    name: str | None
    """The folder's name; None for a skill that came as text."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By path with `/`, sorted."""
    executable: frozenset[str] = frozenset()
    source: str = ""

    @property
    def skill_file(self) -> str:
        """`SKILL.md`, or `skill.md`; empty where there is none."""
        return next((name for name in SKILL_FILES if name in self.files), "")

    @property
    def sha256(self) -> str:
        """Of all files with their names, whatever order they lie in."""
        whole = hashlib.sha256()
        for path, data in self.files.items():
            mark = "x" if path in self.executable else "-"
            whole.update(f"{mark}{path}\0{hashlib.sha256(data).hexdigest()}\n".encode())
        return whole.hexdigest()

    @property
    def scripts(self) -> tuple[str, ...]:
        """The programs beside SKILL.md."""
        return tuple(path for path in self.files if path.startswith("scripts/") or path in self.executable)


def read_folder(source: Path, findings: Findings) -> SkillFolder | None:
    """Read a skill's folder, or the folder of a SKILL.md; blocking. None when it is not to be read.

    What is unsafe or too big is an error each, and then nothing is built.
    """
    folder = source.parent if source.name in SKILL_FILES and not source.is_dir() else source
    walk = _Walk(findings)
    try:
        top = os.open(folder.resolve(strict=True), _DIRECTORY)
    except OSError as error:
        findings.error(
            "NO_SKILL_MD", f"{folder} cannot be read: {_why(error)}", hint="name a folder with a SKILL.md"
        )
        return None
    try:
        walk.directory(top, "", 0)
    finally:
        os.close(top)
    name = folder.resolve().name
    files = dict(sorted(walk.files.items()))
    return SkillFolder(name, files, frozenset(walk.executable), str(folder))


class _Walk:
    """Takes in files until there are too many."""

    def __init__(self, findings: Findings) -> None:
        self.files: dict[str, bytes] = {}
        self.executable: set[str] = set()
        self._found = findings
        self._bytes = 0
        self._full = False

    def directory(self, place: int, path: str, depth: int) -> None:
        """Take in everything below a descriptor."""
        if depth > MOST_DEPTH:
            self._found.error("TOO_BIG", f"folders lie more than {MOST_DEPTH} deep", path)
            return
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            if self._full:
                return
            if name not in LEFT_OUT:
                self._entry(place, f"{path}{name}", name, depth)

    def _entry(self, place: int, path: str, name: str, depth: int) -> None:
        if not name.isprintable():
            self._found.error("UNSAFE_FILE", "a name holds characters that cannot be shown", ascii(path))
            return
        try:
            mode = os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                below = os.open(name, _DIRECTORY, dir_fd=place)
                try:
                    self.directory(below, f"{path}/", depth + 1)
                finally:
                    os.close(below)
            elif stat.S_ISREG(mode):
                self._file(place, path, name)
            else:
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
                self._found.error("UNSAFE_FILE", f"is {kind}", path, "put a copy of the file in its place")
        except OSError as error:
            self._found.error("UNSAFE_FILE", f"cannot be read: {_why(error)}", path)

    def _file(self, place: int, path: str, name: str) -> None:
        with open(os.open(name, _FILE, dir_fd=place), "rb") as file:  # noqa: PTH123
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is no regular file any more")
            data = file.read(MOST_BYTES - self._bytes + 1)
        self._bytes += len(data)
        if self._bytes > MOST_BYTES or len(self.files) >= MOST_FILES:
            self._full = True
            self._found.error(
                "TOO_BIG",
                f"the folder has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB",
                path,
                "a skill's folder holds the skill only",
            )
            return
        self.files[path] = data
        if status.st_mode & stat.S_IXUSR:
            self.executable.add(path)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def hashes(files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """SHA-256 of each file, by path."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files)}
