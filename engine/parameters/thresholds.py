"""Numbers by which agents' loops decide, as the workspace has them: the file `thresholds.toml`.

They stand in a file of their own, apart from approvals, budgets and the sandbox's policy, so that a change of
them can loosen none of these. They are put beneath the configuration of each agent that is created from then
on; what an agent was created with stays in its journal.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.metacognition.settings import KEY as METACOGNITION
from engine.metacognition.settings import MetaSettingsError, read_metacognition
from engine.parameters.settings import KEY as PROCESSING
from engine.parameters.settings import SettingsError, read_settings
from engine.recovery.settings import KEY as RECOVERY
from engine.recovery.settings import RecoverySettingsError, read_recovery

FILE = "thresholds.toml"
SIZE_LIMIT = 64 * 1024
TABLES = (RECOVERY, METACOGNITION, PROCESSING)
"""Its tables; each may have what an agent's configuration may have under this name."""

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
    except (RecoverySettingsError, MetaSettingsError, SettingsError) as error:
        raise ThresholdsError(f"{FILE}: {error}") from None
    return tables


def with_thresholds(workspace: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the workspace's thresholds beneath it, setting by setting; blocking.

    Raises:
        ThresholdsError: the workspace's file cannot be used.
    """
    try:
        with (workspace / FILE).open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        return dict(config)
    except OSError as error:
        raise ThresholdsError(f"{FILE} cannot be read: {error.strerror}") from None
    if len(content) > SIZE_LIMIT:
        raise ThresholdsError(f"{FILE} is larger than {SIZE_LIMIT // 1024} KiB: make it shorter")
    try:
        usual = read_thresholds(content.decode())
    except UnicodeDecodeError as error:
        raise ThresholdsError(f"{FILE}: byte {error.start} is not UTF-8: save it as UTF-8") from None
    found = dict(config)
    for name, table in usual.items():
        given = config.get(name, {})
        # What is wrong with a given setting is said by whoever reads it.
        found[name] = {**table, **given} if isinstance(given, Mapping) else given
    return found
