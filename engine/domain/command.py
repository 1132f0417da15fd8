"""What every command has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Command(BaseModel):
    """What an operator asks."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    do: str
    agent: str = ""
