"""What each model takes, how much it holds and what it costs, from dated tables."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.domain.text import clean_line
from engine.models.request import LEAST_THINKING, ModelRequest

Refusable = Literal["temperature", "top_p", "tool_choice"]
MAX_BYTES = 256 * 1024
"""Largest table that is read."""

_VERSION = re.compile(r"(?:[-@]\d{8}|-latest)$")


class ModelTableError(ValueError):
    """A table of models that cannot be used; the message names the file, what is wrong and what to do."""


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
    """What one model takes; the defaults are those of a model that nobody described."""

    model: str
    context_window: int = 32_000
    """Tokens of prompt and answer together."""
    max_output: int = 4_096
    tools: bool = False
    thinking: Literal["adaptive", "budget", "none"] = "none"
    effort: bool = False
    """Whether it can be told how much to work."""
    refuses: frozenset[str] = frozenset({"temperature", "top_p", "tool_choice"})
    prices: tuple[Price, ...] = ()
    """Bands by `prompt_over`, smallest first; empty when the price is unknown."""
    known: bool = False
    """False where no table has the model."""
    dated: date | None = None
    """When the table was put together."""
    source: str = ""

    def price(self, prompt_tokens: int) -> Price | None:
        """The band for a prompt of this size; None when the price is unknown."""
        reached = [band for band in self.prices if prompt_tokens > band.prompt_over or not band.prompt_over]
        return reached[-1] if reached else None

    def fit(self, request: ModelRequest) -> tuple[ModelRequest, tuple[str, ...]]:
        """The request without what this model refuses, and a note on each change."""
        notes: list[str] = []
        changes: dict[str, Any] = {}
        for name, absent in (("temperature", None), ("top_p", None), ("tool_choice", "")):
            if name in self.refuses and getattr(request, name) != absent:
                changes[name] = absent
                notes.append(f"{name} was left out: {self.model} {self._why}")
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
        for name, absent in (("temperature", None), ("top_p", None), ("tool_choice", "")):
            if getattr(request, name) != absent and name not in self.refuses:
                changes[name] = absent
                notes.append(f"{name} was left out: it cannot be combined with thinking")
        return changes

    @property
    def _why(self) -> str:
        return "refuses it" if self.known else "is not in the table of models, so only what all take is sent"


class _PriceRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Decimal = Field(ge=0, allow_inf_nan=False)
    output: Decimal = Field(ge=0, allow_inf_nan=False)
    cache_write: Decimal = Field(ge=0, allow_inf_nan=False)
    cache_write_1h: Decimal = Field(ge=0, allow_inf_nan=False)
    cache_read: Decimal = Field(ge=0, allow_inf_nan=False)
    prompt_over: int = Field(default=0, ge=0)


class _ModelRow(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    names: list[str] = Field(min_length=1)
    context_window: int = Field(ge=1_000, le=100_000_000)
    max_output: int = Field(ge=1)
    tools: bool = False
    thinking: Literal["adaptive", "budget", "none"] = "none"
    effort: bool = False
    refuses: list[Refusable] = Field(default_factory=list)
    prices: list[_PriceRow] = Field(default_factory=list)

    @model_validator(mode="after")
    def _whole(self) -> _ModelRow:
        if self.prices and all(band.prompt_over for band in self.prices):
            raise ValueError("one of the prices must be without prompt_over, for small prompts")
        if self.max_output > self.context_window:
            raise ValueError("max_output is larger than context_window")
        return self


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    dated: date
    source: str = Field(min_length=1, max_length=500)
    model: list[_ModelRow] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ModelTable:
    """Models by name; the first row that fits counts, the operator's before the shipped ones."""

    rows: tuple[tuple[str, Capabilities], ...] = field(default=())
    """Name or pattern, and what it stands for."""

    def of(self, model: str) -> Capabilities:
        """What is known of a model; careful defaults and no price where nothing is.

        An exact name goes before a pattern of the same table.
        """
        for name, row in self.rows:
            if _fits(name, model):
                return replace(row, model=model)
        return Capabilities(model)

    def before(self, other: ModelTable) -> ModelTable:
        """This table first, then another."""
        return ModelTable((*self.rows, *other.rows))


def _fits(name: str, model: str) -> bool:
    if "*" in name or "?" in name:
        return fnmatchcase(model, name)
    return model == name or _VERSION.sub("", model) == name


@cache
def shipped_models() -> ModelTable:
    """The table that comes with the program; blocking on the first call."""
    resource = files("engine.models") / "models.toml"
    return read_models(resource.read_bytes(), "models.toml")


def load_models(path: Path | None = None) -> ModelTable:
    """The shipped table, and before it an operator's file where there is one; blocking.

    Raises:
        ModelTableError: the file cannot be read or used.
    """
    if path is None:
        return shipped_models()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return shipped_models()
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise ModelTableError(f"{path.name}: {why}: check its permissions") from error
    return read_models(data, path.name).before(shipped_models())


def read_models(data: bytes, name: str) -> ModelTable:
    """A table from the bytes of a file.

    Raises:
        ModelTableError: they are no table of models.
    """
    if len(data) > MAX_BYTES:
        raise ModelTableError(f"{name}: larger than {MAX_BYTES // 1024} KiB: is it the right file?")
    try:
        table = _Table.model_validate(tomllib.loads(data.decode("utf-8"), parse_float=Decimal))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        why = f"not valid TOML: {clean_line(str(error))}"
        raise ModelTableError(f"{name}: {why}: correct the file") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelTableError(f"{name}: '{where}': {first['msg']}: correct the value") from error
    rows = [(name, _capabilities(row, table)) for row in table.model for name in row.names]
    # Patterns last, so that an exact name beside them counts whatever the order of the file.
    return ModelTable(tuple(sorted(rows, key=lambda row: "*" in row[0] or "?" in row[0])))


def _capabilities(row: _ModelRow, table: _Table) -> Capabilities:
    return Capabilities(
        model=row.names[0],
        context_window=row.context_window,
        max_output=row.max_output,
        tools=row.tools,
        thinking=row.thinking,
        effort=row.effort,
        refuses=frozenset(row.refuses),
        prices=_bands(row.prices),
        known=True,
        dated=table.dated,
        source=table.source,
    )


def _bands(rows: Sequence[_PriceRow]) -> tuple[Price, ...]:
    return tuple(Price(**row.model_dump()) for row in sorted(rows, key=lambda row: row.prompt_over))
