"""What the operator says of models in `models.toml`, and what their servers say: rows of one form."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.text import first_problem
from engine.model import LateModel
from engine.models.capabilities import Capabilities, Price, capabilities_of
from engine.value import dataclass, replace

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
