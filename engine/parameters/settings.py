"""Which stages an agent's parameters go through, checked where an agent is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

KEY = "parameter_processing"
"""Where the settings stand in an agent's configuration."""


class SettingsError(ValueError):
    """The settings cannot be used; the message says which and what they must be."""


class ProcessingSettings(BaseModel):
    """The switches of the seed's configuration; a stage that is off is on record as skipped."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    enable_path_correction: bool = True
    """Whether paths and components are looked up and put right."""
    use_llm_extraction: bool = True
    """Whether a model is asked for what is missing."""
    fallback_to_defaults: bool = True
    """Whether arguments that were left out get their defaults; otherwise they are missing."""


def read_settings(meta: Mapping[str, Any]) -> ProcessingSettings:
    """The settings in an agent's configuration.

    Raises:
        SettingsError: a switch is unknown or neither true nor false.
    """
    given = meta.get(KEY, {})
    if not isinstance(given, Mapping):
        known = ", ".join(ProcessingSettings.model_fields)
        raise SettingsError(f"{KEY}: it is a JSON object of switches: {known}")
    try:
        return ProcessingSettings.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (KEY, *first["loc"]))
        known = ", ".join(ProcessingSettings.model_fields)
        raise SettingsError(f"{where}: {first['msg']}; switches: {known}, each true or false") from None
