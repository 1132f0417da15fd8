"""The head of a SKILL.md: where it ends, and what it says (ontology spec §2.1, §2.2)."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import Any

from engine.building.findings import Findings
from engine.building.yaml_text import YamlError, read_mapping

FRONTMATTER_BYTES = 64 * 1024
BODY_BYTES = 2 * 1024 * 1024
STANDARD = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
ANCESTOR = (
    *("type", "version", "triggers", "inputs", "outputs", "chaining", "behavioral_rules", "tone"),
    "mcp_tools",
)
"""Fields of the ancestor, read and warned of: strict validators refuse them."""
REPAIRED = (
    *STANDARD,
    *ANCESTOR,
    "argument-hint",
    "model",
    "effort",
    "author",
    "title",
    "when_to_use",
    "when",
    "category",
    "summary",
    "intent",
    "tags",
    "keywords",
    "usage",
    "arguments",
    "homepage",
    "tools",
)
_FENCE = b"---"


@dataclass(frozen=True, slots=True)
class Parted:
    """A SKILL.md in its two parts."""

    head: str
    """The YAML between the two lines `---`, with plain line ends."""
    body: bytes
    """Everything behind the closing line, byte for byte."""
    body_line: int
    """The line on which the body begins, from 1."""


@dataclass(frozen=True, slots=True)
class Front:
    """What the head says."""

    fields: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """The line of each field in the file, from 1."""


def part(data: bytes, found: Findings, file: str = "SKILL.md") -> Parted | None:
    """Find head and body; None when there is no head, and then `found` says why."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        found.error("ENCODING", "is UTF-16 or UTF-32", f"{file}:1", "save it as UTF-8")
        return None
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        found.warn("BOM", "begins with a byte order mark, which is left out", f"{file}:1", strict=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found.error(
            "ENCODING", f"is no UTF-8: byte {data[error.start]:#04x}", f"{file}:{line}", "save it as UTF-8"
        )
        return None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        found.error("ENCODING", "holds a NUL character", f"{file}:{line}", "this is no text file")
        return None
    return _part(data, found, file)


def _part(data: bytes, found: Findings, file: str) -> Parted | None:
    lines = data.split(b"\n")
    if not _closes(lines[0], found, f"{file}:1"):
        hint = "the first line must be exactly ---"
        found.error("NO_FRONTMATTER", "does not begin with frontmatter", f"{file}:1", hint)
        return None
    end = next((at for at in range(1, len(lines)) if _closes(lines[at], found, f"{file}:{at + 1}")), None)
    if end is None:
        found.error("UNCLOSED_FRONTMATTER", "the frontmatter has no closing ---", f"{file}:1")
        return None
    head = b"\n".join(line.removesuffix(b"\r") for line in lines[1:end])
    body = b"\n".join(lines[end + 1 :])
    if len(head) > FRONTMATTER_BYTES:
        found.error(
            "TOO_BIG", f"the frontmatter has {len(head):,} bytes; {FRONTMATTER_BYTES:,} is the most", file
        )
        return None
    if len(body) > BODY_BYTES:
        found.error("TOO_BIG", f"the body has {len(body):,} bytes; {BODY_BYTES:,} is the most", file)
        return None
    return Parted(head.decode("utf-8"), body, end + 2)


def _closes(line: bytes, found: Findings, where: str) -> bool:
    line = line.removesuffix(b"\r")
    if line == _FENCE:
        return True
    if line.rstrip(b" \t") == _FENCE:
        found.warn("TRAILING_BLANKS", "there are blanks behind ---", where)
        return True
    return False


def read_front(parted: Parted, found: Findings, file: str = "SKILL.md") -> Front | None:
    """Read the head; when YAML refuses it, one repair is tried. None when it is hopeless."""
    try:
        fields, lines = read_mapping(parted.head)
    except YamlError as first:
        where = f"{file}:{first.line + 1}"
        if first.code != "BAD_YAML":
            found.error(first.code, str(first), where, "the frontmatter takes plain `key: value` YAML")
            return None
        head, changed = repaired(parted.head)
        try:
            fields, lines = read_mapping(head)
        except YamlError as error:
            hint = "put values with a colon or a bracket in quotes, and indent with blanks"
            where = f"{file}:{error.line + 1}"
            found.error(error.code, f"the frontmatter is no YAML: {error}", where, hint)
            return None
        for key in changed:
            found.warn(
                "YAML_REPAIRED",
                f"the value of {key} is no YAML as it stands ({first}) and was read as text",
                f"{file}:{lines.get(key, 1) + 1}",
                "put it in quotes",
                strict=True,
            )
    return Front(fields, {key: line + 1 for key, line in lines.items()})


def repaired(head: str) -> tuple[str, tuple[str, ...]]:
    """The head with values of known keys in quotes where YAML refuses them, and these keys.

    A value is the rest of its line, and the indented lines below where it begins without a mark of YAML's.
    """
    lines, changed = head.split("\n"), []
    for at, line in enumerate(lines):
        key, mark, value = line.partition(":")
        if key not in REPAIRED or not mark or not value.strip():
            continue
        end = at + 1
        while end < len(lines) and lines[end].startswith((" ", "\t")):
            end += 1
        if end > at + 1 and value.strip()[0] in "|>[{\"'":
            continue
        try:
            read_mapping("\n".join(lines[at:end]))
        except YamlError:
            whole = " ".join(filter(None, (part.strip() for part in (value, *lines[at + 1 : end]))))
            quoted = whole.replace("'", "''")
            lines[at:end] = [f"{key}: '{quoted}'", *[""] * (end - at - 1)]
            changed.append(key)
    return "\n".join(lines), tuple(changed)


def body_of(data: bytes) -> bytes:
    """The body of a SKILL.md, byte for byte.

    Raises:
        ValueError: it has no head.
    """
    parted = part(data, Findings())
    if parted is None:
        raise ValueError("this SKILL.md has no frontmatter")
    return parted.body
