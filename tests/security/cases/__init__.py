"""The hundred cases of sandbox spec §6, by number."""

from __future__ import annotations

from tests.security.case import Case
from tests.security.cases import commands, configuration, native, network, processes

CASES: tuple[Case, ...] = (
    *native.CASES,
    *commands.CASES,
    *processes.CASES,
    *network.CASES,
    *configuration.CASES,
)
