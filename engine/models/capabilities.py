"""What each model takes, how much it holds and what it costs, from a dated table."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from engine.models.request import LEAST_THINKING, ModelRequest
from engine.value import dataclass

Profile = Literal["", "tiny", "standard", "large"]
TINY, STANDARD = 12_000, 64_000
"""Contexts below these have prompts of the profiles `tiny` and `standard`."""
_VERSION = re.compile(r"(?:[-@]\d{8}|-latest)$")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal
    cache_read: Decimal
    prompt_over: int = 0
    """The band counts for calls with more tokens of prompt than this."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one model takes; the defaults are those of a model that is not described."""

    model: str
    context_window: int = 32_000
    """Tokens of prompt and answer together."""
    max_output: int = 4_096
    tools: bool = False
    thinking: Literal["adaptive", "budget", "none"] = "none"
    effort: bool = False
    """Whether it can be told how much to work."""
    refuses: frozenset[str] = frozenset({"temperature", "tool_choice"})
    prices: tuple[Price, ...] = ()
    """Bands by `prompt_over`, smallest first; empty when the price is unknown."""
    json_schema: bool = False
    """Whether the server holds answers to a schema (`response_format`, a grammar)."""
    profile: Profile = ""
    """How large prompts are; by the context where nobody said."""
    temperature: float | None = None
    """What is sent where a request names none; None leaves it to the model."""
    known: bool = False
    """False where no table has the model."""

    def __post_init__(self) -> None:
        if not self.profile:
            small = "tiny" if self.context_window < TINY else "standard"
            object.__setattr__(self, "profile", small if self.context_window < STANDARD else "large")

    def price(self, prompt_tokens: int) -> Price | None:
        """The band for a prompt of this size; None when the price is unknown."""
        reached = [band for band in self.prices if prompt_tokens > band.prompt_over or not band.prompt_over]
        return reached[-1] if reached else None

    def fit(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        """The request without what this model refuses, and a note on each change."""
        notes: list[str] = []
        changes: dict[str, Any] = {}
        for name, absent in (("temperature", None), ("tool_choice", "")):
            if name in self.refuses and getattr(request, name) != absent:
                changes[name] = absent
                notes.append(f"{name} was left out: {self.model} {self._why}")
        if request.temperature is None and "temperature" not in self.refuses:
            changes["temperature"] = self.temperature
        if request.json_schema is not None and not self.json_schema:
            changes["json_schema"] = None  # its words are in the prompt, too
        if request.effort and not self.effort:
            changes["effort"] = ""
            notes.append(f"effort was left out: {self.model} {self._why}")
        if request.tools and not self.tools:
            changes |= {"tools": (), "tool_choice": ""}
            notes.append(f"the tools were left out: {self.model} {self._why}")
        if request.max_tokens > self.max_output:
            changes["max_tokens"] = self.max_output
            notes.append(f"max_tokens went from {request.max_tokens} to {self.max_output}, the most it gives")
        if request.thinking_budget is not None:
            changes |= self._thinking(changes.get("max_tokens", request.max_tokens), request, notes)
        return replace(request, **changes), tuple(notes)

    def _thinking(self, limit: int, request: ModelRequest, notes: list[str]) -> dict[str, Any]:
        if self.thinking == "none" or limit <= LEAST_THINKING:
            notes.append(f"thinking was left out: {self.model} {self._why}")
            return {"thinking_budget": None}
        changes: dict[str, Any] = {}
        budget = request.thinking_budget or 0
        if self.thinking == "adaptive":
            notes.append(f"the budget of thinking was left out: {self.model} decides by itself")
            changes |= {"thinking_budget": None, "thinking_adaptive": True}
        elif budget >= limit:
            changes["thinking_budget"] = limit - 1
            notes.append(f"the budget of thinking went from {budget} to {limit - 1}, below max_tokens")
        # While it thinks, the endpoint takes neither another temperature nor a forced tool.
        for name, absent in (("temperature", None), ("tool_choice", "")):
            if getattr(request, name) != absent and name not in self.refuses:
                changes[name] = absent
                notes.append(f"{name} was left out: it cannot be combined with thinking")
        return changes

    @property
    def _why(self) -> str:
        return "refuses it" if self.known else "is not in the table of models, so only what all take is sent"


@cache
def _table() -> tuple[tuple[str, Capabilities], ...]:
    """The table that comes with the program: names or patterns, and what they stand for."""
    text = (files("engine.models") / "models.toml").read_text(encoding="utf-8")
    rows = []
    for row in tomllib.loads(text, parse_float=Decimal)["model"]:
        prices = [Price(**band) for band in row.pop("prices", ())]
        known: dict[str, Any] = {
            "prices": tuple(sorted(prices, key=lambda price: price.prompt_over)),
            "refuses": frozenset(row.pop("refuses", ())),
            "known": True,
        }
        rows += [(name, Capabilities(name, **row, **known)) for name in row.pop("names")]
    # Patterns last, so that an exact name beside them counts whatever the order of the file.
    return tuple(sorted(rows, key=lambda row: "*" in row[0] or "?" in row[0]))


def capabilities_of(model: str) -> Capabilities:
    """What is known of a model, careful defaults where nothing is; blocking on the first call."""
    plain = _VERSION.sub("", model)
    for name, row in _table():
        if name in (model, plain) or fnmatchcase(model, name):
            return replace(row, model=model)
    return Capabilities(model)
