"""Identities: who can sign, recorded in the journal, with keys that are in none (mindX spec §7 no. 13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from engine.domain.commands import check_agent_id
from engine.domain.mastermind import Identity
from engine.domain.text import clean, clean_line
from engine.mastermind.addresses import PREFIX, IdentityError, holds, public_key_of
from engine.mastermind.keys import KeyRing

SHORTEST = 6
"""Characters of an address's beginning that may stand for it, the prefix included."""
REASON_LIMIT = 500


class IdentityBook(Protocol):
    """Where identities are recorded: the stream of Mastermind. What is recorded is durable on return."""

    @property
    def identities(self) -> Mapping[str, Identity]:
        """All identities that are or were, by address, oldest first."""

    async def identity_created(self, entity: str, address: str, public_key: str, actor: str) -> None:
        """Record a new identity; the public key in hexadecimal."""

    async def identity_deprecated(self, address: str, reason: str, actor: str) -> None:
        """Record that an identity was given up."""


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """One identity as it is listed."""

    entity: str
    address: str
    status: str
    """`active` or `deprecated`."""
    created: str
    deprecated: str
    reason: str
    trouble: str
    """Why it cannot sign although it is active, in one line; empty where it can."""

    def as_json(self) -> dict[str, str]:
        """The row as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Made:
    """An identity that was asked for."""

    identity: Identity
    new: bool
    """False where the entity had one already."""

    @property
    def message(self) -> str:
        """What came of it, in a line."""
        said = "has the identity" if self.new else "has an identity already:"
        return f"{self.identity.entity} {said} {self.identity.address}"


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed message."""

    entity: str
    address: str
    signature: str
    """64 bytes in hexadecimal."""
    unseen: int
    """Characters of the message that a screen does not show; they are signed like all others."""

    @property
    def message(self) -> str:
        """The signature with its address, as it is printed."""
        note = f"\nnote: {self.unseen} characters of the message cannot be seen; they are signed too"
        return f"{self.address}\n{self.signature}{note if self.unseen else ''}"


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a signature holds, and whose it is."""

    ok: bool
    message: str
    entity: str = ""
    """Empty for an address that is not listed here."""
    deprecated: bool = False


class Identities:
    """Makes, lists and gives up identities, signs and verifies.

    Args:
        keys: the private keys.
        book: where identities are recorded.
    """

    def __init__(self, keys: KeyRing, book: IdentityBook) -> None:
        self._keys = keys
        self._book = book
        self._changing = asyncio.Lock()

    def of(self, entity: str) -> Identity | None:
        """The entity's active identity; None where it has none."""
        known = self._book.identities.values()
        return next((one for one in known if one.entity == entity and not one.deprecated), None)

    async def rows(self) -> tuple[IdentityRow, ...]:
        """All identities that are or were, oldest first."""
        known = tuple(self._book.identities.values())
        troubles = [
            "" if one.deprecated else await asyncio.to_thread(self._keys.trouble, one.address)
            for one in known
        ]
        return tuple(_row(one, trouble) for one, trouble in zip(known, troubles, strict=True))

    async def strays(self) -> tuple[str, ...]:
        """Key files that belong to no active identity: of one that was never recorded, or not yet destroyed.

        Raises:
            IdentityError: the keys cannot be looked at.
        """
        there = await asyncio.to_thread(self._keys.addresses)
        active = {one.address for one in self._book.identities.values() if not one.deprecated}
        return tuple(address for address in there if address not in active)

    async def create(self, entity: str, *, actor: str) -> Made:
        """An entity's identity: the one that it has, or a new one.

        The key is on the disk before the identity is recorded, so that a recorded one had a key.

        Raises:
            IdentityError: the name is none, or the key cannot be kept.
        """
        check_entity(entity)
        async with self._changing:
            if (there := self.of(entity)) is not None:
                return Made(there, new=False)
            address = await asyncio.to_thread(self._keys.create)
            public_key = public_key_of(address).hex()
            try:
                await self._book.identity_created(entity, address, public_key, actor)
            except BaseException:
                if address not in self._book.identities:
                    self._keys.destroy(address)
                raise
        return Made(self._book.identities[address], new=True)

    async def deprecate(self, wanted: str, reason: str = "", *, actor: str) -> str:
        """Give an identity up: it stays listed and verifies, and its private key is destroyed for good.

        Whoever calls this has asked the operator first (`deprecation`).

        Returns:
            What was done, in a line.

        Raises:
            IdentityError: there is no such active identity, or the key is still there.
        """
        reason = clean_line(reason, limit=REASON_LIMIT)
        async with self._changing:
            identity = self.find(wanted)
            if not identity.deprecated:
                await self._book.identity_deprecated(identity.address, reason, actor)
            # Recorded first: should this be cut off here, doing it again destroys the key.
            gone = await asyncio.to_thread(self._keys.destroy, identity.address)
        if identity.deprecated and not gone:
            return (
                f"{identity.address} of {identity.entity} was given up already, on {identity.deprecated[:10]}"
            )
        key = "its private key was destroyed" if gone else "its private key was lost before"
        return f"{identity.address} of {identity.entity} is given up; {key}"

    def deprecation(self, wanted: str) -> str:
        """What giving an identity up would do, in a line, to be confirmed.

        Raises:
            IdentityError: there is no such identity.
        """
        identity = self.find(wanted)
        if identity.deprecated:
            return f"{identity.address} of {identity.entity} is given up already"
        return (
            f"{identity.entity} will sign no more by {identity.address}: its private key is destroyed for "
            "good; what it signed can still be verified"
        )

    async def sign(self, wanted: str, message: str) -> Signed:
        """The signature of a message by an entity's active identity.

        Raises:
            IdentityError: it has none, the key cannot be used, or the message cannot be signed.
        """
        identity = self.find(wanted)
        if identity.deprecated:
            raise IdentityError(
                f"{identity.address} of {identity.entity} is given up and signs no more; id_create "
                f"{identity.entity} makes another"
            )
        signature = await asyncio.to_thread(self._keys.sign, identity.address, message)
        unseen = len(message) - len(clean(message.replace("\t", " "), limit=len(message) + 1))
        return Signed(identity.entity, identity.address, signature, max(unseen, 0))

    async def verify(self, address: str, signature: str, message: str) -> Verified:
        """Whether the identity of an address, listed here or not, signed exactly this message.

        Raises:
            IdentityError: one of them cannot be read.
        """
        ok = await asyncio.to_thread(holds, address, signature, message)
        known = self._book.identities.get(address)
        if not ok:
            return Verified(False, f"no: {address} did not sign this message so")
        if known is None:
            return Verified(True, f"yes: signed by {address}, which is not listed here")
        given_up = f", which was given up on {known.deprecated[:10]}" if known.deprecated else ""
        said = f"yes: signed by {known.entity}, {address}{given_up}"
        return Verified(True, said, known.entity, bool(known.deprecated))

    def find(self, wanted: str) -> Identity:
        """The identity that an entity, an address or the beginning of one names; active ones come first.

        Raises:
            IdentityError: it names none, or several; the message lists them.
        """
        if (active := self.of(wanted)) is not None:
            return active
        known = tuple(self._book.identities.values())
        short = wanted.startswith(PREFIX) and len(wanted) >= SHORTEST
        found = [one for one in known if one.entity == wanted or (short and one.address.startswith(wanted))]
        if len({one.address for one in found if one.entity != wanted}) > 1:
            listed = ", ".join(f"{one.address[:12]}… ({one.entity})" for one in found[:5])
            raise IdentityError(f"'{clean_line(wanted, limit=20)}' may be {listed}; type more of the address")
        if found:
            return found[-1]
        names = ", ".join(dict.fromkeys(one.entity for one in known)) or "none yet"
        raise IdentityError(
            f"'{clean_line(wanted, limit=40)}' has no identity; id_create makes one; there are: {names}"
        )


def check_entity(entity: str) -> str:
    """The entity's name, if it may have an identity: that of an agent or one like it, or `mastermind`.

    Raises:
        IdentityError: says what is wrong with it.
    """
    if entity == "mastermind":
        return entity
    try:
        return check_agent_id(entity)
    except ValueError as error:
        raise IdentityError(clean_line(str(error))) from None


def _row(one: Identity, trouble: str) -> IdentityRow:
    status = "deprecated" if one.deprecated else "active"
    return IdentityRow(one.entity, one.address, status, one.created, one.deprecated, one.reason, trouble)
