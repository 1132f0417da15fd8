"""How patient an agent's recovery is, checked where the agent is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

KEY = "recovery"
"""Where the settings stand in an agent's configuration."""


class RecoverySettingsError(ValueError):
    """The settings cannot be used; the message says which and what they must be."""


class RecoverySettings(BaseModel):
    """What an operator may set."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    max_consecutive_errors: Annotated[int, Field(ge=1, le=20)] = 3
    """Failures in a row after which the operator is asked (spec master-loop §3.4)."""


def read_recovery(meta: Mapping[str, Any]) -> RecoverySettings:
    """The settings in an agent's configuration.

    Raises:
        RecoverySettingsError: a setting is unknown or has a value that it cannot have.
    """
    given = meta.get(KEY, {})
    known = ", ".join(RecoverySettings.model_fields)
    if not isinstance(given, Mapping):
        raise RecoverySettingsError(f"{KEY}: it is a JSON object with any of {known}")
    try:
        return RecoverySettings.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (KEY, *first["loc"]))
        raise RecoverySettingsError(f"{where}: {first['msg']}; settings: {known}") from None
