"""Why something happened, as it is recorded: a code and its values, never a sentence.

The words of each code are in `reasons.txt`, and are made when a reason is made or read, so better words
change no journal and no replay. What an operator, a model, a tool or a program wrote has no code and stays
text, and so does what a journal of 0.1 holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Any

from pydantic_core import CoreSchema, core_schema

from engine.core.text import clean_line


def read_words(path: Path) -> dict[str, str]:
    """Templates of a file by name, a line each: `NAME = TEMPLATE`; see `TEMPLATE`."""
    lines = path.read_text("utf-8").splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


WORDS: dict[str, str] = {"": "{text}"} | read_words(Path(__file__).with_suffix(".txt"))
"""Code to English template."""
IN_0_1 = {
    "run.breakpoint": "breakpoint ",
    "run.budget": "BUDGET: ",
    "run.loops-over": "MAX_LOOPS: ",
    "run.stuck": "STUCK: ",
    "step.unknown": "outcome unknown",
}
"""How 0.1 began its sentences for what is still asked of its journals; no words of today."""


class _Template(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.startswith("#"):
            count = len(value) if isinstance(value, tuple) else value
            return f"{count:,}{format_spec[1:]}{'' if count == 1 else 's'}"
        if format_spec.startswith("|"):
            _, so, otherwise = format_spec.split("|")
            return (so or self.format_field(value, "")) if value else otherwise
        if format_spec.startswith("?"):
            return f"{format_spec[1:]}{self.format_field(value, '')}" if value else ""
        if format_spec == "ms":
            return f"{value / 1000:.1f} s"
        if isinstance(value, tuple):
            return (format_spec or ", ").join(map(str, value))
        return str(format(value, format_spec))


TEMPLATE = _Template()
"""Fills templates: `{n:# step}` is `1 step` or `2 steps`, `{why:?: }` puts a colon before what there is,
`{names:; }` joins, `{on:|so|otherwise}` chooses; the first of these may be left out for what there is.
`{took:ms}` shows milliseconds in seconds.
"""


class Reason(str):
    """A code with its values; to whoever shows it, its words.

    Args:
        code: a key of `WORDS`.
        values: what its template names: texts, numbers, reasons, and tuples of them.
    """

    __slots__ = ("code", "values")
    code: str
    values: Mapping[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> Reason:
        """Make its words; a code of another version stands for itself."""
        try:
            words = TEMPLATE.vformat(WORDS[code], (), values) if code else values["text"]
        except (LookupError, TypeError, ValueError):
            words = " ".join([code, *(f"{name}={value}" for name, value in values.items())])
        made = super().__new__(cls, words)
        made.code, made.values = code, values
        return made

    def is_a(self, code: str) -> bool:
        """Whether it has this code, or one below it (`run.breakpoint.step` is below `run.breakpoint`).

        A sentence of 0.1 has it where it begins as 0.1 worded it (`IN_0_1`).
        """
        if self.code:
            return f"{self.code}.".startswith(f"{code}.")
        return code in IN_0_1 and self.startswith(IN_0_1[code])

    def cut(self, limit: int) -> Reason:
        """The same with texts of at most so many characters."""
        return Reason(self.code, **{name: _cut(value, limit) for name, value in self.values.items()})

    @property
    def recorded(self) -> Any:
        """What stands in a journal: an object with the code and the values, or the text that has no code."""
        if not self.code:
            return self.values["text"]
        return {"code": self.code} | {name: _recorded(value) for name, value in self.values.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return read_reason, (self.recorded,)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        writes = core_schema.plain_serializer_function_ser_schema(lambda reason: reason.recorded)
        return core_schema.no_info_plain_validator_function(read_reason, serialization=writes)


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_cut(held, limit) for held in value)
    if isinstance(value, Reason):
        return value.cut(limit)
    return value[:limit] if isinstance(value, str) else value


def _recorded(value: Any) -> Any:
    if isinstance(value, Reason):
        return value.recorded
    return [_recorded(held) for held in value] if isinstance(value, tuple) else value


def _read(value: Any) -> Any:
    if isinstance(value, Mapping) and "code" in value:
        return read_reason(value)
    return tuple(map(_read, value)) if isinstance(value, list) else value


def read_reason(recorded: Any) -> Reason:
    """A reason from what stands in a journal.

    Raises:
        ValueError: it is neither a text nor an object with a code.
    """
    if isinstance(recorded, Reason):
        return recorded
    if isinstance(recorded, str):
        return free_text(recorded)
    if isinstance(recorded, Mapping) and isinstance(recorded.get("code"), str):
        values = {str(name): _read(value) for name, value in recorded.items() if name != "code"}
        return Reason(recorded["code"], **values)
    raise ValueError("it is neither a text nor a code with its values")


def free_text(text: str) -> Reason:
    """A text that an operator, a model, a tool or a program wrote; a reason stays what it is."""
    return text if isinstance(text, Reason) else Reason("", text=text)


def clean_reason(text: str) -> Reason:
    """A text of others as one clean line; a reason stays what it is."""
    return text if isinstance(text, Reason) else free_text(clean_line(text))


NONE = free_text("")
"""No reason is given."""
