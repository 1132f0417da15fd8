"""Phase 1 of a build: reads a skill's folder as clients do.

Files are read by descriptors: nothing outside is touched, no link is followed, and the bytes that are hashed
are the bytes that are kept, so that nothing can change them in between.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine.crew.builder.findings import Findings
from engine.crew.builder.reading import Reading, read_body
from engine.crew.builder.yaml_text import Frontmatter, parse_frontmatter, split_frontmatter
from engine.tools.mcp.names import tokens_of
from engine.value import dataclass, field

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
        message = f"{folder} cannot be read: {_why(error)}"
        findings.error("NO_SKILL_MD", message, hint="name a folder with a SKILL.md")
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
            message = f"the folder has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB"
            self._found.error("TOO_BIG", message, path, "a skill's folder holds the skill only")
            return
        self.files[path] = data
        if status.st_mode & stat.S_IXUSR:
            self.executable.add(path)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def hashes(files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """SHA-256 of each file, by path."""
    return {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files)}


_MOST = 64
_LETTERS = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "þ": "th", "ð": "d", "ı": "i"}
)


def slug(text: str, most: int = _MOST) -> str:
    """A kebab id of a name: ASCII where it can be written so, else marked by a hash; empty for no name."""
    letters = unicodedata.normalize("NFKD", text.casefold()).translate(_LETTERS)
    folded = "".join(letter for letter in letters if not unicodedata.combining(letter))
    folded = re.sub(r"['’`]", "", folded)
    kebab = re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
    lost = any(letter.isalnum() and not letter.isascii() for letter in folded)
    if lost or (text.strip() and not kebab):
        whole = unicodedata.normalize("NFKC", text.strip())
        mark = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:8]
        kebab = f"{kebab[: most - 9].rstrip('-')}-{mark}" if kebab else f"agent-{mark}"
    return kebab[:most].strip("-")


def unique(name: str, taken: set[str]) -> str:
    """The id, or the id with a number where it is taken; it is taken afterwards."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name[:58]}-{number}"
    taken.add(free)
    return free


_PLACEHOLDER = re.compile(
    r"\s*(\[?TODO\b|replace (this )?with\b|(insert|your) description\b|<description>)", re.I
)


@dataclass(frozen=True, slots=True)
class SkillDefinition:
    """What a SKILL.md with its folder says."""

    id: str
    """The agent's id, made of the name."""
    name: str
    description: str
    license: str
    metadata: Mapping[str, str]
    allowed_tools: tuple[str, ...]
    body: bytes
    """Byte for byte."""
    reading: Reading
    """What the body states."""
    file: str
    front: Frontmatter
    body_line: int
    """Line of the file in which the body begins."""
    scripts: tuple[str, ...]
    """Programs beside SKILL.md, by path."""
    source_sha256: str

    def declared(self, name: str) -> str:
        """What is declared by `metadata.mindrian-NAME`; empty for nothing."""
        return self.metadata.get(f"mindrian-{name}", "").strip()

    def at(self, key: str) -> str:
        """Where a field of the front matter stands."""
        return f"{self.file}:{self.front.lines.get(key, 1)}"

    @property
    def structures(self) -> str:
        """What its parts are, or could be, in words."""
        named = [(len(each.parts), each.agents, each.parts[0].line) for each in self.reading.structures]
        kinds = ("steps", "sub-agents")
        return " or ".join(f"{number} {kinds[agents]} from {self.line(at)}" for number, agents, at in named)

    def line(self, number: int) -> str:
        """Where a line of the body stands in the file."""
        return f"{self.file}:{self.body_line + number - 1}"


def parse_skill(folder: SkillFolder, findings: Findings) -> SkillDefinition | None:
    """Read a skill; None when nothing can be made of it, and then `findings` has the error."""
    file = folder.skill_file
    if not file:
        near = next((path for path in folder.files if path.lower() == "skill.md"), "")
        hint = f"rename {near} to SKILL.md" if near else "put one into the folder"
        findings.error("NO_SKILL_MD", "there is no SKILL.md", folder.source, hint)
        return None
    if file != "SKILL.md":
        findings.warn("SKILL_MD_CASE", "is named skill.md; clients look for SKILL.md", file)
    parted = split_frontmatter(folder.files[file], findings, file)
    front = parse_frontmatter(parted, findings, file) if parted else None
    if parted is None or front is None:
        return None
    reading = read_body(parted.body.decode("utf-8"))
    read = _Reader(front, findings, file)
    name = read.name(folder.name)
    description = read.description()
    licensed, metadata, allowed = front.fields.get("license"), read.metadata(), read.allowed()
    agent_id = slug(name)
    if not agent_id:
        message = "there is no name, and the folder gives none"
        findings.error("NO_NAME", message, file, "add name: to the frontmatter")
    if not description.strip() or not agent_id:
        return None
    if _PLACEHOLDER.match(description):
        hint = "say what it does and when to use it"
        findings.error("PLACEHOLDER", "the description is still the template's", read.at("description"), hint)
        return None
    return SkillDefinition(
        id=agent_id,
        name=name,
        description=description,
        license=licensed if isinstance(licensed, str) else "",
        metadata=metadata,
        allowed_tools=allowed,
        body=parted.body,
        reading=reading,
        file=file,
        front=front,
        body_line=parted.head.count("\n") + 4,
        scripts=folder.scripts,
        source_sha256=folder.sha256,
    )


class _Reader:
    """Reads the fields of a head, leniently."""

    def __init__(self, front: Frontmatter, findings: Findings, file: str) -> None:
        self._fields, self._lines, self._found, self._file = front.fields, front.lines, findings, file

    def at(self, key: str) -> str:
        """Where a field stands."""
        return f"{self._file}:{self._lines.get(key, 1)}"

    def _text(self, key: str) -> str:
        value = self._fields.get(key, "")
        if isinstance(value, str):
            return value
        self._found.warn("NOT_TEXT", f"{key} is to be a text and is a {_kind(value)}", self.at(key))
        return ", ".join(map(str, value)) if isinstance(value, list) else ""

    def name(self, folder: str | None) -> str:
        """The name; the folder's where there is none."""
        name_text = self._text("name").strip()
        if not name_text:
            hint = "add name: to the frontmatter"
            self._found.warn("NO_NAME", "there is no name; the folder's is taken", self.at("name"), hint)
            return folder or ""
        return name_text

    def description(self) -> str:
        """The description, whole."""
        text = self._text("description")
        if not text.strip():
            hint = "say what it does and when to use it"
            self._found.error("NO_DESCRIPTION", "there is no description", self.at("description"), hint)
        return text

    def metadata(self) -> dict[str, str]:
        """What it says of itself besides, each entry as a text."""
        metadata = self._fields.get("metadata", {})
        if not isinstance(metadata, dict):
            if metadata:
                words = "metadata is to be `key: value` lines and was left out"
                self._found.warn("BAD_METADATA", words, self.at("metadata"))
            return {}
        read = {}
        for key, value in metadata.items():
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                read[key] = ", ".join(value)
            elif isinstance(value, str):
                read[key] = value
            else:
                words = f"metadata.{key} is to be a text and was left out"
                self._found.warn("BAD_METADATA", words, self.at("metadata"))
        return read

    def allowed(self) -> tuple[str, ...]:
        """The tokens of the tools that it is allowed."""
        allowed = self._fields.get("allowed-tools", "")
        if isinstance(allowed, list):
            allowed = " ".join(entry for entry in allowed if isinstance(entry, str))
        if not isinstance(allowed, str):
            self._found.warn("BAD_TOOLS", "allowed-tools is neither text nor list", self.at("allowed-tools"))
            return ()
        return tokens_of(allowed)


def words_of(declared: str) -> tuple[str, ...]:
    """The words of a declared text with commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in declared.split(",") if part.strip()))


def _kind(value: Any) -> str:
    return "mapping" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"
