"""Reads YAML from strangers and the front matter of a SKILL.md, and writes YAML.

PyYAML parses; what is ours is the strictness: one plain document without anchors and tags, every key once, a
limit of depth, the line of each key, line breaks of YAML 1.2, and one repair of values that lack quotes.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

import yaml
from yaml.events import CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

from engine.crew.builder.findings import Findings
from engine.value import dataclass, field

_DEPTH = 32


class YamlError(ValueError):
    """A text is not such YAML.

    Args:
        code: what kind of fault, in capitals.
        message: what is wrong.
        line: where, from 1 within the text.
    """

    def __init__(self, code: str, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.code, self.line = code, line


class _Checked:
    """Composes nodes, and refuses what is not allowed where it stands."""

    _deep = 0

    def compose_node(self: Any, parent: Node | None, index: Any) -> Node | None:
        """See `yaml.composer.Composer`."""
        event = self.peek_event()
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            raise YamlError("YAML_ALIAS", "anchors and aliases are not allowed", line)
        if (tag := getattr(event, "tag", None)) is not None:
            raise YamlError("YAML_TAG", f"the tag {tag} is not allowed", line)
        deeper = isinstance(event, CollectionStartEvent)
        if self._deep + deeper > _DEPTH:  # told at once: what is nested deeply takes time squared to read
            raise YamlError("BAD_YAML", f"is nested more than {_DEPTH} deep", line)
        self._deep += deeper
        node: Node | None = super().compose_node(parent, index)  # type: ignore[misc]
        self._deep -= deeper
        return node


class _Texts(_Checked, yaml.BaseLoader):
    """All scalars are texts."""


class _Typed(_Checked, yaml.SafeLoader):
    """Numbers, `true`, `false` and `null`; `on`, `yes` and dates stay texts."""


_Typed.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":timestamp", ":bool", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _letters, _word in (("tT", "true"), ("fF", "false")):
    for _letter in _letters:
        _Typed.yaml_implicit_resolvers.setdefault(_letter, []).append(
            ("tag:yaml.org,2002:bool", re.compile(f"(?:{_word}|{_word.title()}|{_word.upper()})$"))
        )


def read_mapping(text: str, *, typed: bool = False) -> tuple[dict[str, Any], dict[str, int]]:
    """A mapping, and the line of each of its keys, from 1.

    Args:
        text: the document.
        typed: whether numbers and booleans are distinguished from texts; else all scalars are texts, so that
            `version: 1.10` stays `1.10` and `name: on` stays `on`.

    Raises:
        YamlError: it is none, or holds what is not allowed.
    """
    loader = _Typed if typed else _Texts
    try:
        node = yaml.compose(text, Loader=loader)
    except YamlError:
        raise
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"holds U+{ord(text[error.position]):04X}, a character that YAML does not allow"
        raise YamlError("BAD_YAML", message, line) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(filter(None, (error.problem, error.context))) or "cannot be read"
        raise YamlError("BAD_YAML", message, mark.line + 1 if mark else 1) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise YamlError("BAD_YAML", "cannot be read") from error
    if not isinstance(node, MappingNode):
        raise YamlError("NOT_A_MAPPING", "must be `key: value` lines")
    made = loader("")
    try:
        value = _value(node, made)
    finally:
        made.dispose()
    return value, {key.value: key.start_mark.line + 1 for key, _ in node.value}


def _value(node: Node, loader: Any) -> Any:
    line = node.start_mark.line + 1
    if isinstance(node, ScalarNode):
        if re.search("[\ud800-\udfff]", node.value):
            raise YamlError("BAD_YAML", "holds half of a character", line)
        try:
            return loader.construct_object(node)
        except (ValueError, yaml.YAMLError) as error:
            raise YamlError("BAD_YAML", str(error), line) from error
    if isinstance(node, SequenceNode):
        return [_value(child, loader) for child in node.value]
    mapping: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise YamlError("BAD_YAML", "a key must be a plain word", key.start_mark.line + 1)
        if key.value in mapping:
            raise YamlError("DUPLICATE_KEY", f"{key.value!r} is there twice", key.start_mark.line + 1)
        mapping[key.value] = _value(value, loader)
    return mapping


class _Plain(yaml.SafeDumper):
    """Puts texts with line ends of other scripts between double quotes, where they are kept."""


def _written(dumper: yaml.SafeDumper, text: str) -> ScalarNode:
    odd = any(letter in text for letter in "\x85\u2028\u2029")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if odd else None)


_Plain.add_representer(str, _written)


def write_mapping(value: dict[str, Any]) -> str:
    """YAML of a plain mapping, the same for the same values: keys sorted, one way to write each scalar."""
    return yaml.dump(
        value, Dumper=_Plain, sort_keys=True, allow_unicode=True, width=100, default_flow_style=False
    )


FRONTMATTER_BYTES = 64 * 1024
BODY_BYTES = 2 * 1024 * 1024
STANDARD = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_OTHERS = """argument-hint model effort author title when_to_use when category summary intent tags keywords
    usage arguments homepage tools type version triggers inputs outputs chaining behavioral_rules tone
    mcp_tools"""
REPAIRED = frozenset((*STANDARD, *_OTHERS.split()))
_FENCE = b"---"
_AGAIN = re.compile(
    rb"\s*(---)[ \t]*\r?\n(?:[^\n]*\n){0,20}?(?:name|description):[^\n]*\n(?:[^\n]*\n){0,99}?---\s*\n"
)


@dataclass(frozen=True, slots=True)
class SplitSkill:
    """A SKILL.md in its two parts."""

    head: str
    """The YAML between the two lines `---`, with plain line ends."""
    body: bytes
    """Everything behind the closing line, byte for byte."""


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """What the head says."""

    fields: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """The line of each field in the file, from 1."""


def split_frontmatter(data: bytes, findings: Findings, file: str = "SKILL.md") -> SplitSkill | None:
    """Find head and body; None when there is no head, and then `findings` says why."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        findings.error("ENCODING", "is UTF-16 or UTF-32", f"{file}:1", "save it as UTF-8")
        return None
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        findings.warn("BOM", "begins with a byte order mark, which is left out", f"{file}:1")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"is no UTF-8: byte {data[error.start]:#04x}"
        findings.error("ENCODING", message, f"{file}:{line}", "save it as UTF-8")
        return None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        findings.error("ENCODING", "holds a NUL character", f"{file}:{line}", "this is no text file")
        return None
    return _part(data, findings, file)


def _part(data: bytes, findings: Findings, file: str) -> SplitSkill | None:
    lines = data.split(b"\n")
    if not _closes(lines[0], findings, f"{file}:1"):
        hint = "the first line must be exactly ---"
        findings.error("NO_FRONTMATTER", "does not begin with frontmatter", f"{file}:1", hint)
        return None
    end = next((at for at in range(1, len(lines)) if _closes(lines[at], findings, f"{file}:{at + 1}")), None)
    if end is None:
        findings.error("UNCLOSED_FRONTMATTER", "the frontmatter has no closing ---", f"{file}:1")
        return None
    head = b"\n".join(line.removesuffix(b"\r") for line in lines[1:end])
    body = b"\n".join(lines[end + 1 :])
    for name, part, most in (("frontmatter", head, FRONTMATTER_BYTES), ("body", body, BODY_BYTES)):
        if len(part) > most:
            findings.error("TOO_BIG", f"the {name} has {len(part):,} bytes; {most:,} is the most", file)
            return None
    if again := _AGAIN.match(body):
        line = end + 2 + body.count(b"\n", 0, again.start(1))
        hint = "keep one: which of them counts cannot be known"
        findings.error("TWO_FRONTMATTERS", "a second front matter begins here", f"{file}:{line}", hint)
        return None
    return SplitSkill(head.decode("utf-8"), body)


def _closes(line: bytes, findings: Findings, where: str) -> bool:
    line = line.removesuffix(b"\r")
    if line == _FENCE:
        return True
    if line.rstrip(b" \t") == _FENCE:
        findings.warn("TRAILING_BLANKS", "there are blanks behind ---", where)
        return True
    return False


def parse_frontmatter(parted: SplitSkill, findings: Findings, file: str = "SKILL.md") -> Frontmatter | None:
    """Read the head; when YAML refuses it, one repair is tried. None when it is hopeless."""
    try:
        fields, lines = read_mapping(parted.head)
    except YamlError as first:
        where = f"{file}:{first.line + 1}"
        if first.code != "BAD_YAML":
            findings.error(first.code, str(first), where, "the frontmatter takes plain `key: value` YAML")
            return None
        head, changed = repaired(parted.head)
        try:
            fields, lines = read_mapping(head)
        except YamlError as error:
            hint = "put values with a colon or a bracket in quotes, and indent with blanks"
            where = f"{file}:{error.line + 1}"
            findings.error(error.code, f"the frontmatter is no YAML: {error}", where, hint)
            return None
        for key in changed:
            message = f"the value of {key} is no YAML as it stands ({first}) and was read as text"
            findings.warn("YAML_REPAIRED", message, f"{file}:{lines.get(key, 1) + 1}", "put it in quotes")
    return Frontmatter(fields, {key: line + 1 for key, line in lines.items()})


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
