"""An agent's settings for parameters and recovery, and the workspace's file `thresholds.toml`.

The numbers by which agents' loops decide stand in a file of their own, apart from approvals, budgets and the
sandbox's policy, so that a change of them can loosen none of these. They are put beneath the configuration of
each agent that is created from then on; what an agent was created with stays in its journal.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.store.places import open_plain
from engine.core.text import first_problem
from engine.core.trust import FolderTrust
from engine.memory.metacognition.schedule import METACOGNITION_KEY, MetaSettingsError, read_metacognition
from engine.model import LateModel
from engine.tools.parameters.processing import ProcessingSettings

PARAMETERS_KEY = "parameter_processing"
"""Where the settings stand in an agent's configuration."""


class SettingsError(ValueError):
    """The settings cannot be used; the message says which and what they must be."""


M = TypeVar("M", bound=BaseModel)


def _read(meta: Mapping[str, Any], key: str, model: type[M], form: str) -> M:
    """The settings under a key of a configuration; `form` says what they must be."""
    given, known = meta.get(key, {}), ", ".join(model.model_fields)
    if not isinstance(given, Mapping):
        raise SettingsError(f"{key}: it is a JSON object of {form}: {known}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as invalid:
        raise SettingsError(f"{key}.{first_problem(invalid)}; {form}: {known}") from None


def read_settings(meta: Mapping[str, Any]) -> ProcessingSettings:
    """The settings in an agent's configuration.

    Raises:
        SettingsError: a switch is unknown or neither true nor false.
    """
    return _read(meta, PARAMETERS_KEY, ProcessingSettings, "switches, each true or false")


RECOVERY_KEY = "recovery"
"""Where the settings stand in an agent's configuration."""


class RecoverySettings(BaseModel, metaclass=LateModel):
    """What an operator may set."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    max_consecutive_errors: Annotated[int, Field(ge=1, le=20)] = 3
    """Failures in a row after which the operator is asked."""


def read_recovery(meta: Mapping[str, Any]) -> RecoverySettings:
    """The settings in an agent's configuration.

    Raises:
        SettingsError: a setting is unknown or has a value that it cannot have.
    """
    return _read(meta, RECOVERY_KEY, RecoverySettings, "settings")


FILE = "thresholds.toml"
SIZE_LIMIT = 64 * 1024
TABLES = (RECOVERY_KEY, METACOGNITION_KEY, PARAMETERS_KEY)
"""Its tables; each may have what an agent's configuration may have under this name."""

CONFIGURABLE = (RECOVERY_KEY, PARAMETERS_KEY)
"""Those that may be changed while an agent lives; `thresholds` changes metacognition's."""

Thresholds = dict[str, dict[str, Any]]


class ThresholdsError(ValueError):
    """The file cannot be used; the message says what is wrong with it and what to do."""


def read_thresholds(text: str) -> Thresholds:
    """The tables of a file.

    Raises:
        ThresholdsError: it is no TOML, or has what it cannot have.
    """
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ThresholdsError(f"{FILE}: {error}; correct the line") from None
    for name, table in tables.items():
        if name not in TABLES or not isinstance(table, dict):
            raise ThresholdsError(f"{FILE}: '{name[:40]}' is no table of it; tables: {', '.join(TABLES)}")
    try:
        read_recovery(tables)
        read_metacognition(tables)
        read_settings(tables)
    except (MetaSettingsError, SettingsError) as error:
        raise ThresholdsError(f"{FILE}: {error}") from None
    return tables


def with_thresholds(
    workspace: Path, config: Mapping[str, Any], trust: FolderTrust | None = None
) -> dict[str, Any]:
    """A configuration with the workspace's thresholds beneath it, setting by setting; blocking.

    Args:
        workspace: whose file it is.
        config: the configuration.
        trust: what of the folder counts; None for all.

    Raises:
        ThresholdsError: the workspace's file cannot be used.
    """
    try:
        with open_plain(workspace / FILE) as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        return dict(config)
    except OSError as error:
        raise ThresholdsError(f"{FILE} cannot be read: {error.strerror}") from None
    if trust is not None and not trust.admits(FILE, content):
        return dict(config)
    if len(content) > SIZE_LIMIT:
        raise ThresholdsError(f"{FILE} is larger than {SIZE_LIMIT // 1024} KiB: make it shorter")
    try:
        usual = read_thresholds(content.decode())
    except UnicodeDecodeError as error:
        raise ThresholdsError(f"{FILE}: byte {error.start} is not UTF-8: save it as UTF-8") from None
    merged = dict(config)
    for name, table in usual.items():
        given = config.get(name, {})
        # What is wrong with a given setting is said by whoever reads it.
        merged[name] = {**table, **given} if isinstance(given, Mapping) else given
    return merged
