"""A room of each user and each tier of this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import TIERS, USERS, Room, need, room


@pytest.fixture(params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Room]:
    with room(request.param) as made:
        yield made


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> Tier:
    need(request.param)
    return Tier(request.param)
