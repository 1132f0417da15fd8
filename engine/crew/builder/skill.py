"""Phase 1 of a build: reads a skill as clients do."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from engine.crew.builder.findings import Findings
from engine.crew.builder.reading import Reading, read_body
from engine.crew.builder.skill_folder import SkillFolder
from engine.crew.builder.yaml_text import Frontmatter, parse_frontmatter, split_frontmatter
from engine.tools.mcp.names import tokens_of
from engine.value import dataclass

_MOST = 64
_LETTERS = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "þ": "th", "ð": "d", "ı": "i"}


def slug(text: str, most: int = _MOST) -> str:
    """A kebab id of a name: ASCII where it can be written so, else marked by a hash; empty for no name."""
    folded = "".join(
        _LETTERS.get(letter, letter) for letter in unicodedata.normalize("NFKD", text.casefold())
    )
    folded = "".join(letter for letter in folded if not unicodedata.combining(letter))
    folded = re.sub(r"['’`]", "", folded)
    kebab = re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
    lost = any(letter.isalnum() and not letter.isascii() for letter in folded)
    if lost or (text.strip() and not kebab):
        mark = hashlib.sha256(
            unicodedata.normalize("NFKC", text.strip()).encode("utf-8", "replace")
        ).hexdigest()[:8]
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
    known = read.known()
    agent_id = slug(name)
    if not agent_id:
        findings.error(
            "NO_NAME", "there is no name, and the folder gives none", file, "add name: to the frontmatter"
        )
    if not description.strip() or not agent_id:
        return None
    if _PLACEHOLDER.match(description):
        hint = "say what it does and when to use it"
        findings.error("PLACEHOLDER", "the description is still the template's", read.at("description"), hint)
        return None
    return SkillDefinition(
        **known,
        id=agent_id,
        name=name,
        description=description,
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
            words = "there is no description"
            self._found.error(
                "NO_DESCRIPTION", words, self.at("description"), "say what it does and when to use it"
            )
        return text

    def known(self) -> dict[str, Any]:
        """The other fields of the standard; those of other programs are passed over."""
        license_said = self._fields.get("license", "")
        return {
            "license": license_said if isinstance(license_said, str) else "",
            "metadata": self._metadata(),
            "allowed_tools": self._allowed(),
        }

    def _metadata(self) -> dict[str, str]:
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

    def _allowed(self) -> tuple[str, ...]:
        allowed = self._fields.get("allowed-tools", "")
        if isinstance(allowed, list):
            return tuple(
                dict.fromkeys(
                    token for entry in allowed if isinstance(entry, str) for token in tokens_of(entry)
                )
            )
        if not isinstance(allowed, str):
            self._found.warn("BAD_TOOLS", "allowed-tools is neither text nor list", self.at("allowed-tools"))
            return ()
        return tokens_of(allowed)


def words_of(declared: str) -> tuple[str, ...]:
    """The words of a declared text with commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in declared.split(",") if part.strip()))


def _kind(value: Any) -> str:
    return "mapping" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"
