"""The requests that memory takes: one model a request, checked at the border, with the method that serves it.

A request's fields have the names of the seed's parameters, so that a call written for the original fits.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from engine.core.journal import canonical
from engine.core.text import NESTING_LIMIT, too_deep
from engine.memory.commands import NAMES, RECORDED_PREFIX
from engine.memory.embedding import Vector
from engine.memory.errors import MemoryInputError
from engine.memory.search import MemorySearcher
from engine.memory.tables import Reading
from engine.memory.writer import Unit
from engine.model import LateModel
from engine.value import asdict, dataclass, is_dataclass

R_co = TypeVar("R_co", covariant=True)

JSON_BYTES = 64_000
"""Bytes that metadata, arguments and context may have."""
MEMORY_CHARACTERS = 256_000
"""Characters that a memory may have; what is longer belongs into an artifact."""
BIG_CHARACTERS = 64 * 1024 * 1024
"""Characters that a result or an artifact may have."""


def _whole(text: Any) -> Any:
    """Texts that UTF-8 can hold; what is no text is for the type to refuse."""
    if isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"holds half a surrogate pair at character {error.start}: leave it out"
            ) from None
    return text


Whole = BeforeValidator(_whole)


def _small_json(value: dict[str, Any]) -> dict[str, Any]:
    if too_deep(value):
        raise ValueError(f"is more than {NESTING_LIMIT} lists and objects deep: make it flatter")
    try:
        size = len(canonical(value).encode())
    except (TypeError, ValueError) as error:
        raise ValueError(f"is no JSON ({error})") from None
    if size > JSON_BYTES:
        raise ValueError(f"has {size} bytes as JSON and may have {JSON_BYTES}: record an artifact instead")
    return value


def _clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    clean = tuple(dict.fromkeys(_whole(tag).strip().lower() for tag in tags))
    if any(not 1 <= len(tag) <= 64 for tag in clean):
        raise ValueError("each tag must have 1 to 64 characters")
    return clean


Ident = Annotated[str, Field(min_length=1, max_length=64), Whole]
MaybeIdent = Annotated[str, Field(max_length=64), Whole]
Idents = Annotated[tuple[Ident, ...], Field(strict=False, max_length=1_000)]
Line = Annotated[str, Field(max_length=500), Whole]
Text = Annotated[str, Field(max_length=64_000), Whole]
Memo = Annotated[str, Field(min_length=1, max_length=MEMORY_CHARACTERS), Whole]
Big = Annotated[str, Field(max_length=BIG_CHARACTERS), Whole]
Key = Annotated[str, Field(max_length=200), Whole]
Json = Annotated[dict[str, Any], AfterValidator(_small_json)]
Tags = Annotated[tuple[str, ...], Field(strict=False, max_length=50), AfterValidator(_clean_tags)]
Share = Annotated[float, Field(ge=0, le=1)]
Importance = Annotated[float, Field(ge=0, le=10)]
Seconds = Annotated[int, Field(ge=0, le=10**10)]
Limit = Annotated[int, Field(ge=1, le=500)]
Offset = Annotated[int, Field(ge=0, le=10**9)]

E = TypeVar("E", bound=StrEnum)
Word = Annotated[E, Field(strict=False)]
"""A word of an enumeration, as a member or as text."""


_VALUE_NAMES = {
    **dict.fromkeys(("memory_type", "artifact_type", "action_type"), "type"),
    **dict.fromkeys(("parent_workflow_id", "parent_action_id", "parent_thought_id"), "parent"),
    "memory_level": "level",
    "context_data": "context",
    "tool_name": "tool",
    "tool_args": "args",
    "idempotency_key": "key",
}
"""Fields of requests whose values have them under another name than without `_id`."""


@dataclass(frozen=True, slots=True)
class View:
    """What a reading request is answered from."""

    reading: Reading
    finder: MemorySearcher
    vector: Vector | None = None
    """That of the text which the request looks for; None where words count alone."""


class Request(BaseModel, Generic[R_co], metaclass=LateModel):
    """Something asked of memory; `R_co` is its result.

    A subclass that defines `answer` only reads, one that defines `write` changes memory; either is then known
    by its name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
    verb: ClassVar[str] = ""
    """What it is called; the class's name in small letters unless it says otherwise."""
    writes: ClassVar[bool] = False
    big: ClassVar[tuple[str, ...]] = ()
    """Fields whose text may be of any size."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        if "answer" in own or "write" in own:
            cls.writes = "write" in own
            if "verb" not in own:
                cls.verb = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
            _requests[cls.verb] = cls

    def values(self, *left_out: str) -> dict[str, Any]:
        """What the request gives, by the names of a value's fields: `action_id` is its `action`.

        Args:
            left_out: names of the request's fields.
        """
        given = self.model_dump(exclude=set(left_out))
        plain = {name: name.removeprefix("relevant_").removesuffix("_id") for name in given}
        return {_VALUE_NAMES.get(name, plain[name]): value for name, value in given.items()}

    @property
    def meant(self) -> str:
        """The text whose likeness counts for the answer; empty for none."""
        return ""

    def answer(self, view: View) -> R_co:
        """The result of a request that only reads."""
        raise NotImplementedError

    def write(self, unit: Unit) -> R_co:
        """Do what the request asks for, within a unit of work, and give its result."""
        raise NotImplementedError


Q = TypeVar("Q", bound=Request[Any])
_requests: dict[str, type[Request[Any]]] = {}


def every_request() -> Mapping[str, type[Request[Any]]]:
    """All requests by name."""
    return _requests


def build(kind: type[Q], arguments: Mapping[str, Any]) -> Q:
    """The request with these arguments.

    Raises:
        MemoryInputError: an argument is missing, unknown or not as it must be; all are named.
    """
    key = arguments.get("idempotency_key")
    if isinstance(key, str) and key.startswith(RECORDED_PREFIX):
        # Such keys say what was written from the journal already.
        raise MemoryInputError(
            "idempotency_key", f"idempotency_key: it cannot begin with {RECORDED_PREFIX!r}."
        )
    try:
        return kind.model_validate(dict(arguments))
    except ValidationError as error:
        faults = [_in_words(kind, fault) for fault in error.errors(include_url=False)]
        wrong = {str(fault["loc"][0]) for fault in error.errors(include_url=False) if fault["loc"]}
        parameter = wrong.pop() if len(wrong) == 1 else ""
        raise MemoryInputError(parameter, f"{kind.verb}: {'; '.join(faults[:5])}.") from None


def named(verb: str, arguments: Mapping[str, Any]) -> Request[Any]:
    """The request of that name, ours or the seed's, with these arguments.

    Raises:
        MemoryInputError: there is none, or its arguments do not fit.
    """
    kinds = every_request()
    kind = kinds.get(NAMES.get(verb, verb))
    if kind is None:
        near = difflib.get_close_matches(verb, kinds, n=1)
        hint = f" did you mean {near[0]!r}?" if near else f" it has {', '.join(kinds)}."
        raise MemoryInputError("", f"Memory has no request {verb!r}:{hint}")
    return build(kind, arguments)


def as_json(answer: Any) -> dict[str, Any]:
    """An answer as JSON: a value's fields, or a list of them."""
    if isinstance(answer, tuple):
        return {"items": [as_json(item) for item in answer]}
    if is_dataclass(answer) and not isinstance(answer, type):
        return asdict(answer)
    return {"answer": answer}


def _in_words(kind: type[Request[Any]], fault: Any) -> str:
    place = ".".join(str(part) for part in fault["loc"]) or "the request"
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place, kind.model_fields, n=1)
        hint = f" did you mean {near[0]!r}?" if near else f" it takes {', '.join(kind.model_fields)}"
        return f"there is no argument {place!r}:{hint}"
    if fault["type"] == "missing":
        return f"{place} is missing"
    given = repr(fault["input"])
    text = str(fault["msg"]).removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    return f"{place}: {text} (given: {given if len(given) <= 60 else given[:60] + '…'})"
