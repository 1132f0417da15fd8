"""Identities: who can sign, recorded in Mastermind's stream, with keys that are in no journal."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from engine.core.campaigns import IdentityCreated, IdentityDeprecated
from engine.core.command import check_agent_id
from engine.core.improvement import Identity
from engine.core.text import clean, clean_line
from engine.improve.keys import PREFIX, IdentityError, KeyRing, public_key_of, verify_signature
from engine.improve.state import EventStream

SHORTEST = 6
"""Characters of an address's beginning that may stand for it, the prefix included."""
REASON_LIMIT = 500


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
        return asdict(self)


@dataclass(frozen=True, slots=True)
class NewIdentity:
    """An identity that was asked for."""

    identity: Identity
    new: bool
    """False where the entity had one already."""

    @property
    def message(self) -> str:
        """The result in a line."""
        words = "has the identity" if self.new else "has an identity already:"
        return f"{self.identity.entity} {words} {self.identity.address}"


@dataclass(frozen=True, slots=True)
class SignedMessage:
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
class Verification:
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
        stream: Mastermind's stream, where identities are recorded.
    """

    def __init__(self, keys: KeyRing, stream: EventStream) -> None:
        self._keys = keys
        self._stream = stream
        self._changing = asyncio.Lock()

    @property
    def _known(self) -> dict[str, Identity]:
        """All identities that are or were, by address, oldest first."""
        return self._stream.state.identities

    def of(self, entity: str) -> Identity | None:
        """The entity's active identity; None where it has none."""
        mine = (known for known in self._known.values() if known.entity == entity and not known.deprecated)
        return next(mine, None)

    async def rows(self) -> tuple[IdentityRow, ...]:
        """All identities that are or were, oldest first."""
        rows = []
        for known in tuple(self._known.values()):
            active = not known.deprecated
            trouble = await asyncio.to_thread(self._keys.trouble, known.address) if active else ""
            status, dates = "active" if active else "deprecated", (known.created, known.deprecated)
            rows.append(IdentityRow(known.entity, known.address, status, *dates, known.reason, trouble))
        return tuple(rows)

    async def create(self, entity: str, *, actor: str) -> NewIdentity:
        """An entity's identity: the one that it has, or a new one.

        The key is on the disk before the identity is recorded, so that a recorded one had a key.

        Raises:
            IdentityError: the name is none, or the key cannot be kept.
        """
        check_entity(entity)
        async with self._changing:
            if (known := self.of(entity)) is not None:
                return NewIdentity(known, new=False)
            address = await asyncio.to_thread(self._keys.create)
            created = IdentityCreated(identity=Identity(entity, address, public_key_of(address).hex()))
            try:
                await self._stream.write(created, actor=actor)
            except BaseException:
                if address not in self._known:
                    self._keys.destroy(address)
                raise
        return NewIdentity(self._known[address], new=True)

    async def deprecate(self, name: str, reason: str = "", *, actor: str) -> str:
        """Give an identity up: it stays listed and verifies, and its private key is destroyed for good.

        The caller has asked the operator first (`deprecation`).

        Returns:
            What was done, in a line.

        Raises:
            IdentityError: there is no such active identity, or the key is still there.
        """
        async with self._changing:
            identity = self.find(name)
            if not identity.deprecated:
                event = IdentityDeprecated(
                    address=identity.address, reason=clean_line(reason, limit=REASON_LIMIT)
                )
                await self._stream.write(event, actor=actor)
            # Recorded first: should this be cut off here, doing it again destroys the key.
            gone = await asyncio.to_thread(self._keys.destroy, identity.address)
        whose = f"{identity.address} of {identity.entity}"
        if identity.deprecated and not gone:
            return f"{whose} was given up already, on {identity.deprecated[:10]}"
        key = "its private key was destroyed" if gone else "its private key was lost before"
        return f"{whose} is given up; {key}"

    def deprecation(self, name: str) -> str:
        """What giving an identity up would do, in a line, to be confirmed.

        Raises:
            IdentityError: there is no such identity.
        """
        identity = self.find(name)
        if identity.deprecated:
            return f"{identity.address} of {identity.entity} is given up already"
        return (
            f"{identity.entity} will sign no more by {identity.address}: its private key is destroyed for "
            "good; what it signed can still be verified"
        )

    async def sign(self, name: str, message: str) -> SignedMessage:
        """The signature of a message by an entity's active identity.

        Raises:
            IdentityError: it has none, the key cannot be used, or the message cannot be signed.
        """
        identity = self.find(name)
        if identity.deprecated:
            raise IdentityError(
                f"{identity.address} of {identity.entity} is given up and signs no more; id_create "
                f"{identity.entity} makes another"
            )
        signature = await asyncio.to_thread(self._keys.sign, identity.address, message)
        unseen = len(message) - len(clean(message.replace("\t", " "), limit=len(message) + 1))
        return SignedMessage(identity.entity, identity.address, signature, max(unseen, 0))

    async def verify(self, address: str, signature: str, message: str) -> Verification:
        """Whether the identity of an address, listed here or not, signed exactly this message.

        Raises:
            IdentityError: one of them cannot be read.
        """
        if not await asyncio.to_thread(verify_signature, address, signature, message):
            return Verification(False, f"no: {address} did not sign this message so")
        known = self._known.get(address)
        if known is None:
            return Verification(True, f"yes: signed by {address}, which is not listed here")
        given_up = f", which was given up on {known.deprecated[:10]}" if known.deprecated else ""
        text = f"yes: signed by {known.entity}, {address}{given_up}"
        return Verification(True, text, known.entity, bool(known.deprecated))

    def find(self, name: str) -> Identity:
        """The identity that an entity, an address or the beginning of one names; active ones come first.

        Raises:
            IdentityError: it names none, or several; the message lists them.
        """
        if (active := self.of(name)) is not None:
            return active
        identities = self._known.values()
        short = name.startswith(PREFIX) and len(name) >= SHORTEST
        matches = [
            known
            for known in identities
            if known.entity == name or (short and known.address.startswith(name))
        ]
        if len({known.address for known in matches if known.entity != name}) > 1:
            listed = ", ".join(f"{known.address[:12]}… ({known.entity})" for known in matches[:5])
            raise IdentityError(f"'{clean_line(name, limit=20)}' may be {listed}; type more of the address")
        if matches:
            return matches[-1]
        names = ", ".join(dict.fromkeys(known.entity for known in identities)) or "none yet"
        raise IdentityError(
            f"'{clean_line(name, limit=40)}' has no identity; id_create makes one; there are: {names}"
        )


def check_entity(entity: str) -> None:
    """Refuse a name that may not have an identity: others than an agent's, and `mastermind`.

    Raises:
        IdentityError: says what is wrong with it.
    """
    if entity != "mastermind":
        try:
            check_agent_id(entity)
        except ValueError as error:
            raise IdentityError(clean_line(str(error))) from None
