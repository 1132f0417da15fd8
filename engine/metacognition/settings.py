"""An agent's metacognition as its configuration has it, checked where the agent is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.domain.metacognition import PRESETS, Bounds, MetaSettings

KEY = "metacognition"
"""Where the settings stand in an agent's configuration."""

Loops = Annotated[int, Field(ge=1, le=100_000)]


class MetaSettingsError(ValueError):
    """The settings cannot be used; the message says which and what they must be."""


class MetaConfiguration(BaseModel):
    """What an operator may set; what is left out is the preset's."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    enabled: bool = True
    model: bool = False
    """Whether the agent's model writes reflections and consolidations; otherwise they are computed."""
    preset: Literal["seed", "long"] = "seed"
    reflection_threshold: int | None = None
    consolidation_threshold: int | None = None
    """Successes after which it is due, to begin with; clamped to the preset's bounds."""
    optimise_every: Loops | None = None
    adapt_every: Loops | None = None
    promote_every: Loops | None = None
    maintain_every: Loops | None = None
    link_every: Loops | None = None


def read_metacognition(meta: Mapping[str, Any]) -> MetaSettings:
    """The settings in an agent's configuration.

    Raises:
        MetaSettingsError: a setting is unknown or has a value that it cannot have.
    """
    given = meta.get(KEY, {})
    known = ", ".join(MetaConfiguration.model_fields)
    if not isinstance(given, Mapping):
        raise MetaSettingsError(f"{KEY}: it is a JSON object with any of {known}")
    try:
        read = MetaConfiguration.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (KEY, *first["loc"]))
        raise MetaSettingsError(f"{where}: {first['msg']}; settings: {known}") from None
    usual = PRESETS[read.preset]
    intervals = ("optimise_every", "adapt_every", "promote_every", "maintain_every", "link_every")
    return replace(
        usual,
        enabled=read.enabled,
        model=read.model,
        reflection=_begun_at(usual.reflection, read.reflection_threshold),
        consolidation=_begun_at(usual.consolidation, read.consolidation_threshold),
        **{name: value for name in intervals if (value := getattr(read, name)) is not None},
    )


def _begun_at(bounds: Bounds, base: int | None) -> Bounds:
    return bounds if base is None else replace(bounds, base=bounds.clamp(base))
