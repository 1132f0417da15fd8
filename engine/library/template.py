"""Templates: strings of a recipe in which parameters are replaced by their values.

`{name}` stands for the value of parameter `name`, `{name|filter}` for the filtered value; filters
may follow one another. Only a lower-case name between single braces counts: `{}`, `{"a": 1}`,
`{x!r}`, `{ x }` and `{HOME}` are plain text, so most program text can be written as it is. A
literal `{name}` is written `{{name}}`. Values are put in once and never looked into again.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from engine.library.parameters import Value

_SLOT = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}|\{([a-z][a-z0-9_]*)((?:\|[a-z]+)*)\}")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")[:60] or "note"


def _snake(text: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"\W+", "_", apart).strip("_").lower() or "module"


def _camel(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[\W_]+", text) if part) or "Thing"


def _title(text: str) -> str:
    return " ".join(part[:1].upper() + part[1:] for part in re.split(r"[\s_-]+", text) if part)


FILTERS: dict[str, Callable[[str], str]] = {
    "shell": shlex.quote,
    "py": repr,
    "slug": _slug,
    "snake": _snake,
    "camel": _camel,
    "title": _title,
    "stem": lambda text: posixpath.splitext(posixpath.basename(text))[0],
}
"""What may follow a parameter: `shell` quotes one argument of a command, `py` gives a Python literal."""


class TemplateError(ValueError):
    """A template that cannot be read; the message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a template where a value goes."""

    parameter: str
    filters: tuple[str, ...]


def slots_of(template: str) -> Iterator[Slot]:
    """The slots of a template in order.

    Raises:
        TemplateError: a filter is unknown.
    """
    for match in _SLOT.finditer(template):
        if match.group(1) is None:
            filters = tuple(match.group(3).split("|")[1:])
            for name in filters:
                if name not in FILTERS:
                    raise TemplateError(f"'{match.group(0)}' has an unknown filter: use {', '.join(FILTERS)}")
            yield Slot(match.group(2), filters)


def fill(template: str, values: Mapping[str, Value]) -> str:
    """The template with its slots filled.

    A list is joined by blanks when it is filtered by `shell` (each item quoted by itself), else by commas.

    Raises:
        KeyError: a slot has no value; loading a recipe makes sure that this cannot happen.
    """

    def put(match: re.Match[str]) -> str:
        if match.group(1) is not None:
            return "{" + match.group(1) + "}"
        value, filters = values[match.group(2)], match.group(3).split("|")[1:]
        if isinstance(value, str):
            return _filtered(value, filters)
        return (" " if "shell" in filters else ", ").join(_filtered(item, filters) for item in value)

    return _SLOT.sub(put, template)


def _filtered(text: str, filters: list[str]) -> str:
    for name in filters:
        text = FILTERS[name](text)
    return text
