"""Addresses and signatures: what anyone can check without a secret (mindX spec §1.2, §7 no. 13).

An address holds the whole public key, so that a signature is checked by the address alone. What is signed
begins with words that no other use of the key begins with, and names the address and the message's length:
a signed text can be taken for nothing but a message that this identity signed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

PREFIX = "ph1"
"""How every address begins."""
CHECK_BYTES = 3
KEY_BYTES = 32
SIGNATURE_BYTES = 64
MESSAGE_LIMIT = 1_000_000
"""Characters of a message."""
_ADDRESS = re.compile(PREFIX + r"[a-z2-7]{56}")
_DOMAIN = b"Pilothouse signed message, version 1\n"
_CHECK_DOMAIN = b"Pilothouse address, version 1\n"


class IdentityError(ValueError):
    """Nothing was signed, made or given up; the message says why and what to do, in one line."""


def address_of(public_key: bytes) -> str:
    """The address of an Ed25519 public key: `ph1` and 56 characters of base 32, a checksum among them.

    Raises:
        IdentityError: it has not 32 bytes.
    """
    if len(public_key) != KEY_BYTES:
        raise IdentityError(f"a public key has {KEY_BYTES} bytes, not {len(public_key)}")
    return PREFIX + base64.b32encode(public_key + _check(public_key)).decode().lower()


def public_key_of(address: str) -> bytes:
    """The public key that an address holds, 32 bytes.

    Raises:
        IdentityError: it is no address, or a character of it is wrong.
    """
    if not _ADDRESS.fullmatch(address):
        raise IdentityError(
            f"this is no address: {PREFIX} and 56 characters of a-z 2-7 are expected; id_list shows them"
        )
    held = base64.b32decode(address.removeprefix(PREFIX).upper())
    key, check = held[:KEY_BYTES], held[KEY_BYTES:]
    if check != _check(key):
        raise IdentityError("the address does not fit its checksum: a character is wrong or missing")
    return key


def _check(public_key: bytes) -> bytes:
    return hashlib.sha256(_CHECK_DOMAIN + public_key).digest()[:CHECK_BYTES]


def signed_bytes(address: str, message: str) -> bytes:
    """What a signature covers: the domain, the address, the message's length in bytes and the message.

    Raises:
        IdentityError: the message is empty, too long, or no text that can be written as UTF-8.
    """
    if not message:
        raise IdentityError("a message is missing")
    if len(message) > MESSAGE_LIMIT:
        raise IdentityError(
            f"the message has {len(message):,} characters; at most {MESSAGE_LIMIT:,} are signed"
        )
    try:
        content = message.encode()
    except UnicodeEncodeError as error:
        raise IdentityError(
            f"the message is no text: its character {error.start + 1} cannot be written as UTF-8"
        ) from None
    return _DOMAIN + f"{address}\n{len(content)}\n".encode() + content


def read_signature(text: str) -> bytes:
    """The 64 bytes of a signature that is written in hexadecimal.

    Raises:
        IdentityError: it is no signature.
    """
    try:
        signature = binascii.unhexlify(text)
    except ValueError:  # binascii.Error among them
        signature = b""
    if len(signature) != SIGNATURE_BYTES:
        raise IdentityError(
            f"this is no signature: agent_sign prints one, {2 * SIGNATURE_BYTES} hexadecimal digits"
        )
    return signature


def holds(address: str, signature: str, message: str) -> bool:
    """Whether the identity of an address signed exactly this message.

    Raises:
        IdentityError: the address, the signature or the message cannot be read as one.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key, given = public_key_of(address), read_signature(signature)
    covered = signed_bytes(address, message)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(given, covered)
    except InvalidSignature:
        return False
    except ValueError:
        raise IdentityError("the address holds no key that can be used") from None
    return True
