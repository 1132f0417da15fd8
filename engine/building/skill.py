"""Phase 1: a skill as it is, read as clients read it and judged as the standard's validator does.

Source: ontology spec §2.1, §2.2.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.building.findings import Finding, Findings
from engine.building.frontmatter import ANCESTOR, STANDARD, Front, part, read_front
from engine.building.markdown import Document, Section, Step, links_in, read_markdown
from engine.building.naming import slug
from engine.building.resources import Resource, SkillFolder
from engine.mcp.allowed import tokens_of

MOST_NAME, MOST_DESCRIPTION, MOST_COMPATIBILITY, MOST_LINES = 64, 1024, 500, 500
_PLACEHOLDER = re.compile(
    r"\s*(\[?TODO\b|replace (this )?with\b|(insert|your) description\b|<description>)", re.I
)


@dataclass(frozen=True, slots=True)
class LinkSeen:
    """A link of the body."""

    target: str
    exists: bool


@dataclass(frozen=True, slots=True)
class SkillDefinition:
    """What a SKILL.md with its folder says."""

    id: str
    """The agent's id, made of the name."""
    name: str
    description: str
    license: str
    compatibility: str
    metadata: Mapping[str, str]
    allowed_tools: tuple[str, ...]
    extra: Mapping[str, Any]
    """Fields that are not the standard's, the ancestor's among them."""
    body: bytes
    """Byte for byte."""
    document: Document
    sections: tuple[Section, ...]
    steps: tuple[Step, ...]
    resources: tuple[Resource, ...]
    links: tuple[LinkSeen, ...]
    source_sha256: str
    strict_ok: bool
    findings: tuple[Finding, ...] = field(default=())
    placeholder: bool = False
    """Whether the description is still the template's."""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8")

    def declared(self, name: str) -> Any:
        """What is declared by `metadata.mindrian-NAME`, else by the ancestor's field; None for nothing."""
        said = self.metadata.get(f"mindrian-{name}")
        if said is not None and said.strip():
            return said
        return self.extra.get(name.replace("-", "_"), self.extra.get(name))


def read_skill(folder: SkillFolder, found: Findings) -> SkillDefinition | None:
    """Read a skill; None when nothing can be made of it, and then `found` has the error."""
    file = folder.skill_file
    if not file:
        near = next((path for path in folder.files if path.lower() == "skill.md"), "")
        hint = f"rename {near} to SKILL.md" if near else "put one into the folder"
        found.error("NO_SKILL_MD", "there is no SKILL.md", folder.source, hint)
        return None
    if file != "SKILL.md":
        found.warn("SKILL_MD_CASE", "is named skill.md; clients look for SKILL.md", file)
    parted = part(folder.files[file], found, file)
    front = read_front(parted, found, file) if parted else None
    if parted is None or front is None:
        return None
    document = read_markdown(parted.body.decode("utf-8"))
    read = _Reader(front, found, file)
    name = read.name(folder.name)
    description = read.description()
    known = read.known()
    links = _links(document, folder, found, file, parted.body_line)
    _size(parted.body, folder, found, file)
    agent_id = slug(name)
    if not agent_id:
        found.error(
            "NO_NAME", "there is no name, and the folder gives none", file, "add name: to the frontmatter"
        )
    if not description.strip() or not agent_id:
        return None
    if placeholder := bool(_PLACEHOLDER.match(description)):
        found.warn("PLACEHOLDER", "the description is still the template's", read.at("description"))
    return SkillDefinition(
        **known,
        id=agent_id,
        name=name,
        description=description,
        extra={key: value for key, value in front.fields.items() if key not in STANDARD},
        body=parted.body,
        document=document,
        sections=document.sections,
        steps=document.steps,
        resources=folder.resources,
        links=links,
        source_sha256=folder.sha256,
        strict_ok=found.strict_ok,
        findings=tuple(found.all),
        placeholder=placeholder,
    )


class _Reader:
    """Reads the fields of a head, each judged twice: leniently, and as the standard does."""

    def __init__(self, front: Front, found: Findings, file: str) -> None:
        self._fields, self._lines, self._found, self._file = front.fields, front.lines, found, file

    def at(self, key: str) -> str:
        """Where a field stands."""
        return f"{self._file}:{self._lines.get(key, 1)}"

    def _text(self, key: str) -> str:
        value = self._fields.get(key, "")
        if isinstance(value, str):
            return value
        self._found.warn(
            "NOT_TEXT", f"{key} is to be a text and is a {_kind(value)}", self.at(key), strict=True
        )
        return ", ".join(map(str, value)) if isinstance(value, list) else ""

    def name(self, folder: str | None) -> str:
        """The name; the folder's where there is none."""
        said = self._text("name").strip()
        if not said:
            hint = "add name: to the frontmatter"
            self._found.warn(
                "NO_NAME", "there is no name; the folder's is taken", self.at("name"), hint, strict=True
            )
            return folder or ""
        name = unicodedata.normalize("NFKC", said)
        if faults := name_faults(name):
            hint = f"the agent's id is {slug(said)}"
            self._found.warn("BAD_NAME", f"{said!r} {'; '.join(faults)}", self.at("name"), hint, strict=True)
        if folder is not None and unicodedata.normalize("NFKC", folder) != name:
            words = f"the name {said!r} is not that of its folder, {folder!r}"
            self._found.warn("NAME_DIFFERS", words, self.at("name"), strict=True)
        return said

    def description(self) -> str:
        """The description, whole."""
        said = self._text("description")
        if not said.strip():
            words = "there is no description"
            self._found.error(
                "NO_DESCRIPTION", words, self.at("description"), "say what it does and when to use it"
            )
        elif len(said) > MOST_DESCRIPTION:
            words = f"the description has {len(said):,} characters; {MOST_DESCRIPTION:,} is the most"
            self._found.warn("LONG_DESCRIPTION", words, self.at("description"), strict=True)
        return said

    def known(self) -> dict[str, Any]:
        """The other fields of the standard; what is unknown is told."""
        for key in self._fields:
            if key not in STANDARD:
                words = f"{key} is no field of the standard" + (", but read" if key in ANCESTOR else "")
                hint = "strict validators refuse it; metadata is the place"
                self._found.warn("UNKNOWN_FIELD", words, self.at(key), hint, strict=True)
        compatibility = self._text("compatibility")
        if len(compatibility) > MOST_COMPATIBILITY:
            words = f"compatibility has {len(compatibility)} characters; {MOST_COMPATIBILITY} is the most"
            self._found.warn("LONG_COMPATIBILITY", words, self.at("compatibility"), strict=True)
        license_said = self._fields.get("license", "")
        return {
            "license": license_said if isinstance(license_said, str) else "",
            "compatibility": compatibility,
            "metadata": self._metadata(),
            "allowed_tools": self._allowed(),
        }

    def _metadata(self) -> dict[str, str]:
        said = self._fields.get("metadata", {})
        if not isinstance(said, dict):
            if said:
                words = "metadata is to be `key: value` lines and was left out"
                self._found.warn("BAD_METADATA", words, self.at("metadata"))
            return {}
        read = {}
        for key, value in said.items():
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                read[key] = ", ".join(value)
            elif isinstance(value, str):
                read[key] = value
            else:
                words = f"metadata.{key} is to be a text and was left out"
                self._found.warn("BAD_METADATA", words, self.at("metadata"))
        return read

    def _allowed(self) -> tuple[str, ...]:
        said = self._fields.get("allowed-tools", "")
        if isinstance(said, list):
            words = "allowed-tools is a list; the standard has a text with blanks between"
            self._found.warn("LIST_TOOLS", words, self.at("allowed-tools"))
            return tuple(
                dict.fromkeys(token for one in said if isinstance(one, str) for token in tokens_of(one))
            )
        if not isinstance(said, str):
            self._found.warn("BAD_TOOLS", "allowed-tools is neither text nor list", self.at("allowed-tools"))
            return ()
        return tokens_of(said)


def name_faults(name: str) -> list[str]:
    """What keeps a name from being one by the standard; the name is normalised (NFKC)."""
    faults = []
    if len(name) > MOST_NAME:
        faults.append(f"has {len(name)} characters; {MOST_NAME} is the most")
    if name != name.lower():
        faults.append("is not in lower case")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        faults.append("has a hyphen at an edge or two together")
    if not all(letter.isalnum() or letter == "-" for letter in name):
        faults.append("has other characters than letters, digits and hyphens")
    return faults


def _links(
    document: Document, folder: SkillFolder, found: Findings, file: str, first: int
) -> tuple[LinkSeen, ...]:
    """The links, compared with the names that were read; no path is looked up on the disk."""
    seen = []
    for link in links_in(document):
        where = f"{file}:{first + link.line - 1}"
        if link.outside:
            found.warn("LINK_OUTSIDE", f"{link.target} leads out of the folder and is not read", where)
            continue
        there = folder.has(link.target)
        if not there and folder.name is not None:
            found.warn("LINK_MISSING", f"{link.target} is not in the folder", where)
        seen.append(LinkSeen(link.target, there))
    return tuple(seen)


def _size(body: bytes, folder: SkillFolder, found: Findings, file: str) -> None:
    if not body.strip():
        found.warn(
            "EMPTY_BODY", "there is nothing but the frontmatter", file, "the description is all it goes by"
        )
    lines = folder.files[file].count(b"\n") + 1
    if lines > MOST_LINES:
        found.warn(
            "LONG_BODY", f"has {lines:,} lines; {MOST_LINES} is advised", file, "move parts into references/"
        )


def words_of(said: Any) -> tuple[str, ...]:
    """The words of a declared list: a text with commas, or a list."""
    parts: Sequence[Any] = (
        said.split(",") if isinstance(said, str) else said if isinstance(said, list) else ()
    )
    return tuple(dict.fromkeys(one.strip() for one in parts if isinstance(one, str) and one.strip()))


def _kind(value: Any) -> str:
    return "mapping" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"
