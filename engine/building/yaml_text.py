"""YAML as it is taken from strangers: one plain document, no anchors, no tags, every key once."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.events import CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

_DEPTH = 32
_NO_BREAKS = "\x85\u2028\u2029"
"""Line ends to YAML 1.1 and letters to YAML 1.2, which is what others read skills by."""
_PRIVATE = range(0xE000, 0xF900)


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
            (
                "tag:yaml.org,2002:bool",
                re.compile(f"(?:{_word}|{_word.title()}|{_word.upper()})$"),
            )
        )


def read_mapping(text: str, *, typed: bool = False) -> tuple[dict[str, Any], dict[str, int]]:
    """A mapping, and the line of each of its keys, from 1.

    Args:
        text: the document.
        typed: whether numbers and booleans are told from texts; else all scalars are texts, so that
            `version: 1.10` stays `1.10` and `name: on` stays `on`.

    Raises:
        YamlError: it is none, or holds what is not allowed.
    """
    loader = _Typed if typed else _Texts
    held, back = _held(text)
    try:
        node = yaml.compose(held, Loader=loader)
    except YamlError:
        raise
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        said = f"holds U+{ord(text[error.position]):04X}, a character that YAML does not allow"
        raise YamlError("BAD_YAML", said, line) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(filter(None, (error.problem, error.context))) or "cannot be read"
        raise YamlError("BAD_YAML", said, mark.line + 1 if mark else 1) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise YamlError("BAD_YAML", "cannot be read") from error
    if not isinstance(node, MappingNode):
        raise YamlError("NOT_A_MAPPING", "must be `key: value` lines")
    made = loader("")
    try:
        value = _value(node, made, back)
    finally:
        made.dispose()
    return value, {key.value: key.start_mark.line + 1 for key, _ in node.value}


def _held(text: str) -> tuple[str, dict[int, int]]:
    """The text with other letters in the place of those that PyYAML breaks lines at, and the way back."""
    there = [letter for letter in _NO_BREAKS if letter in text]
    if not there:
        return text, {}
    free = (code for code in _PRIVATE if chr(code) not in text)
    there_to = {ord(letter): code for letter, code in zip(there, free, strict=False)}
    return text.translate(there_to), {code: letter for letter, code in there_to.items()}


def _value(node: Node, loader: Any, back: dict[int, int]) -> Any:
    line = node.start_mark.line + 1
    if isinstance(node, ScalarNode):
        if back:
            node.value = node.value.translate(back)
        if re.search("[\ud800-\udfff]", node.value):
            raise YamlError("BAD_YAML", "holds half of a character", line)
        try:
            return loader.construct_object(node)
        except (ValueError, yaml.YAMLError) as error:
            raise YamlError("BAD_YAML", str(error), line) from error
    if isinstance(node, SequenceNode):
        return [_value(one, loader, back) for one in node.value]
    found: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise YamlError("BAD_YAML", "a key must be a plain word", key.start_mark.line + 1)
        key.value = key.value.translate(back)
        if key.value in found:
            raise YamlError("DUPLICATE_KEY", f"{key.value!r} is there twice", key.start_mark.line + 1)
        found[key.value] = _value(value, loader, back)
    return found


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
