"""Identities in Mastermind's stream: what `identities.IdentityBook` is on a real journal."""

from __future__ import annotations

from collections.abc import Mapping

from engine.domain.mastermind import Identity
from engine.journal.mastermind_events import IdentityCreated, IdentityDeprecated
from engine.mastermind.state import Spine


class RecordedIdentities:
    """Writes what becomes of identities to the stream, and reads them from its fold."""

    def __init__(self, spine: Spine) -> None:
        self._spine = spine

    @property
    def identities(self) -> Mapping[str, Identity]:
        """All identities that are or were, by address, oldest first."""
        return self._spine.state.identities

    async def identity_created(self, entity: str, address: str, public_key: str, actor: str) -> None:
        """Record a new identity; see `IdentityBook`."""
        await self._spine.write(IdentityCreated(identity=Identity(entity, address, public_key)), actor=actor)

    async def identity_deprecated(self, address: str, reason: str, actor: str) -> None:
        """Record that an identity was given up; see `IdentityBook`."""
        await self._spine.write(IdentityDeprecated(address=address, reason=reason), actor=actor)
