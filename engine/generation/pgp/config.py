"""What a generation is run with, on three levels: plan over agent over system, parameter by parameter.

The thesis' rule (spec BDI §2.7, Table 4.1): what a level leaves unset is inherited. Filters replace
those of the levels above, remarks are joined with the plan's first.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from engine.generation.pgp.context import META_PLANS, ContextFilter
from engine.generation.pgp.prompt import SYSTEM_PROMPT, PromptBuilder, PromptVariant, user_prompt

_T = TypeVar("_T")

REMARK_LIMIT = 2_000
"""Characters of one remark."""


class Secret:
    """A token that is shown, written and pickled nowhere; only `reveal` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The token itself; for the request handler alone."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret cannot be copied or stored: pass the object itself on")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationConfig:
    """The parameters that one level sets; None inherits.

    Raises:
        ValueError: a value is out of range; the message names it.
    """

    model: str | None = None
    temperature: float | None = None
    """From 0 to 2."""
    max_tokens: int | None = None
    """Tokens of an answer."""
    url: str | None = None
    """The model's HTTP address, without a path."""
    token: Secret | None = field(default=None, repr=False, compare=False)
    request_timeout_s: float | None = None
    """Seconds from asking to the whole answer."""
    connect_timeout_s: float | None = None
    socket_timeout_s: float | None = None
    """Seconds between two pieces of an answer."""
    filters: tuple[ContextFilter, ...] | None = None
    system_prompt: PromptBuilder | None = None
    user_prompt: PromptBuilder | None = None
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _checked("temperature", self.temperature, "from 0 to 2", lambda value: 0 <= value <= 2)
        _checked("max_tokens", self.max_tokens, "above 0", lambda value: value > 0)
        _checked("url", self.url, "an http or https address with a host", _is_address)
        for name in ("request_timeout_s", "connect_timeout_s", "socket_timeout_s"):
            seconds: float | None = getattr(self, name)
            _checked(name, seconds, "above 0 and finite", lambda value: 0 < value < float("inf"))
        for remark in self.remarks:
            _checked("remark", remark, f"not empty and at most {REMARK_LIMIT} characters", _is_remark)


def _checked(name: str, value: _T | None, wanted: str, fits: Callable[[_T], bool]) -> None:
    if value is not None and not fits(value):
        raise ValueError(f"{name} is {str(value)[:80]!r}: it must be {wanted}")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # A password in the address would reach logs and provenance.
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _is_remark(text: str) -> bool:
    return bool(text.strip()) and len(text) <= REMARK_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """What a generation is run with, once the levels are resolved; nothing is unset but an absent token."""

    model: str
    temperature: float
    max_tokens: int
    url: str
    token: Secret | None = field(repr=False, compare=False)
    request_timeout_s: float
    connect_timeout_s: float
    socket_timeout_s: float
    filters: tuple[ContextFilter, ...]
    system_prompt: PromptBuilder
    user_prompt: PromptBuilder
    remarks: tuple[str, ...]

    def public(self) -> dict[str, str | float]:
        """The parameters for provenance and logs, without the token; prompts and filters by name."""
        return {
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "url": self.url,
            "request_timeout_s": self.request_timeout_s,
            "connect_timeout_s": self.connect_timeout_s,
            "socket_timeout_s": self.socket_timeout_s,
            "filters": ", ".join(one.name for one in self.filters),
            "system_prompt": self.system_prompt.name,
            "user_prompt": self.user_prompt.name,
            "remarks": len(self.remarks),
        }


DEFAULTS = GenerationConfig(
    model="",
    temperature=0.5,
    max_tokens=2048,
    url="http://localhost:8080",
    request_timeout_s=120.0,
    connect_timeout_s=10.0,
    socket_timeout_s=60.0,
    filters=(META_PLANS,),
    system_prompt=SYSTEM_PROMPT,
    user_prompt=user_prompt(PromptVariant.HINTS_AND_REMARKS),
)
"""The values of what no level sets; those of the thesis' code (spec BDI §2.7)."""


def resolve(
    plan: GenerationConfig | None, agent: GenerationConfig | None, system: GenerationConfig | None
) -> EffectiveConfig:
    """What a generation is run with: each parameter from the most specific level that sets it."""
    levels = [level for level in (plan, agent, system) if level is not None]
    values = {one.name: _first_set(one.name, (*levels, DEFAULTS)) for one in fields(GenerationConfig)}
    values["remarks"] = tuple(text for level in levels for text in level.remarks)
    return EffectiveConfig(**values)


def _first_set(name: str, levels: Iterable[GenerationConfig]) -> Any:
    return next((value for level in levels if (value := getattr(level, name)) is not None), None)
