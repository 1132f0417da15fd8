"""What models take, hold and cost: a dated table, the operator's `models.toml`, and what servers say."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.text import first_problem
from engine.model import LateModel
from engine.models.request import LEAST_THINKING, ModelRequest
from engine.value import dataclass, replace

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


FILE = "models.toml"
SIZE_LIMIT = 256 * 1024
_HEADER = re.compile(r"^\s*\[\[\s*model\s*\]\]", re.MULTILINE)


class ModelRow(BaseModel, metaclass=LateModel):
    """What is said of a model; what is left out is taken from elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str = Field(min_length=1, max_length=200)
    """As the endpoint knows it; with `*` or `?` a pattern."""
    context: int | None = Field(default=None, ge=512, le=100_000_000, strict=True)
    """Tokens of prompt and answer together."""
    output: int | None = Field(default=None, ge=16, le=10_000_000, strict=True)
    """Longest answer in tokens."""
    tools: bool | None = Field(default=None, strict=True)
    temperature: bool | float | None = None
    """What is sent where nothing else is said, 0 to 1; false where it takes none."""
    json_schema: bool | None = Field(default=None, strict=True)
    """Whether the server holds answers to a schema."""
    price_in: Decimal | None = Field(default=None, ge=0, le=1_000_000)
    """US dollars for a million tokens of prompt."""
    price_out: Decimal | None = Field(default=None, ge=0, le=1_000_000)
    profile: Literal["tiny", "standard", "large"] | None = None
    """How large prompts are."""

    def over(self, known: Capabilities) -> Capabilities:
        """What is known of a model, with what this says of it in its place."""
        changes: dict[str, Any] = {}
        if self.context is not None:
            changes |= {"context_window": self.context, "profile": ""}
            changes["max_output"] = min(known.max_output, self.context // 2)
        given = {"max_output": self.output, "tools": self.tools, "json_schema": self.json_schema}
        changes |= {name: value for name, value in given.items() if value is not None}
        if self.profile is not None:
            changes["profile"] = self.profile
        if self.temperature is not None:
            number = None if isinstance(self.temperature, bool) else self.temperature
            refused = known.refuses | {"temperature"} if self.temperature is False else known.refuses
            changes |= {"temperature": number, "refuses": refused}
            if self.temperature is not False:
                changes["refuses"] = refused - {"temperature"}
        if self.tools:
            changes["refuses"] = changes.get("refuses", known.refuses) - {"tool_choice"}
        if self.price_in is not None and self.price_out is not None:
            band = Price(self.price_in, self.price_out, self.price_in, self.price_in, self.price_in)
            changes["prices"] = (band,)
        return replace(known, **changes)


@dataclass(frozen=True, slots=True)
class ModelTable:
    """The operator's rows, those that count first; exact names count before patterns."""

    rows: tuple[tuple[str, ModelRow], ...] = ()
    """Each with its file and line."""

    def row(self, model: str) -> tuple[str, ModelRow] | None:
        """The row of a model with its place."""
        fits = [each for each in self.rows if each[1].name == model or fnmatchcase(model, each[1].name)]
        return next((each for each in fits if each[1].name == model), fits[0] if fits else None)

    def capabilities(self, model: str, served: ModelRow | None = None) -> Capabilities:
        """What is known of a model: by its server where no table has it, and by the operator's above all."""
        known, row = capabilities_of(model), self.row(model)
        if not known.known and (served or row):
            # What a server refuses is learnt from its answers.
            known = replace(known, refuses=frozenset())
            known = served.over(known) if served is not None else known
        return known if row is None else replace(row[1].over(known), known=True)


def read_models(content: bytes, name: str, problems: list[str]) -> ModelTable:
    """The rows of a file; what is wrong is said with file and line, and left out."""
    try:
        if len(content) > SIZE_LIMIT:
            raise ValueError(f"larger than {SIZE_LIMIT // 1024} KiB")  # noqa: TRY301 - said as the others are
        text = content.decode()
        given = tomllib.loads(text, parse_float=Decimal)
    except ValueError as error:
        problems.append(f"{name}: {error}; the file was left out")
        return ModelTable()
    entries = given.pop("model", [])
    problems += [f"{name}: {key}: there is no such table; models are [[model]]" for key in given]
    lines = [text.count("\n", 0, match.end()) + 1 for match in _HEADER.finditer(text)]
    if not isinstance(entries, list) or len(entries) != len(lines):
        problems.append(f"{name}: each model begins with a line [[model]]; the file was left out")
        return ModelTable()
    rows = []
    for line, entry in zip(lines, entries, strict=True):
        try:
            row = ModelRow.model_validate(entry)
            if (wrong := _fault(row)) is not None:
                raise ValueError(wrong)  # noqa: TRY301 - said as the others are
        except ValidationError as error:
            line = _line_of(text, line, str(error.errors()[0]["loc"][0]))
            problems.append(f"{name}:{line}: {first_problem(error)}; the entry was left out")
        except ValueError as error:
            problems.append(f"{name}:{line}: {error}; the entry was left out")
        else:
            rows.append((f"{name}:{line}", row))
    return ModelTable(tuple(rows))


def _fault(row: ModelRow) -> str | None:
    if (row.price_in is None) != (row.price_out is None):
        return "a price needs price_in and price_out"
    if not isinstance(row.temperature, bool | None) and not 0 <= row.temperature <= 1:
        return "temperature is from 0 to 1, or false"
    if row.context is not None and row.output is not None and row.output >= row.context:
        return "output must be smaller than context"
    return None


def _line_of(text: str, begin: int, key: str) -> int:
    """The line of a key of the entry that begins in a line; that of the entry where the key is missing."""
    for number, line in enumerate(text.split("\n")[begin:], begin + 1):
        if _HEADER.match(line):
            break
        if line.partition("=")[0].strip().strip("\"'") == key:
            return number
    return begin
