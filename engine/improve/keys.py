"""Keys: addresses and signatures that anyone can check, and private keys that only the operator can read.

An address holds the whole public key, so that a signature is checked by the address alone. What is signed
begins with words that no other use of the key begins with, and names the address and the message's length:
a signed text can be taken for nothing but a message that this identity signed.

A private key is one file, `.pilothouse/keys/ADDRESS.key`, outside of what programs in the jail see. Nothing
else ever holds one: no journal, log, snapshot or export, and no child's environment.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


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


def parse_signature(text: str) -> bytes:
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


def verify_signature(address: str, signature: str, message: str) -> bool:
    """Whether the identity of an address signed exactly this message.

    Raises:
        IdentityError: the address, the signature or the message cannot be read as one.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key, given = public_key_of(address), parse_signature(signature)
    covered = signed_bytes(address, message)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(given, covered)
    except InvalidSignature:
        return False
    except ValueError:
        raise IdentityError("the address holds no key that can be used") from None
    return True


KEYS_DIRECTORY = "keys"
"""Where the keys are, in the data directory."""
SUFFIX = ".key"
_HEAD = b"pilothouse private key 1\n"
_NEW = ".new-"
_FILE_BYTES = len(_HEAD) + 2 * KEY_BYTES + 1
_TRIES, _WAIT_S = 100, 0.02


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Turn an error of the system into one that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise IdentityError(f"{what}: {error.strerror}") from None


class KeyRing:
    """The private keys of a workspace.

    Its methods block for as long as the disk takes; call them in a thread.

    Args:
        directory: where the files are; made, with mode 0700, when the first key is.
        jail: what programs of agents can read; no key is kept below it.
    """

    def __init__(self, directory: Path, jail: Path | None = None) -> None:
        self.directory = directory
        self._jail = jail

    def create(self) -> str:
        """Make a key pair; the address under which its private key is kept.

        Raises:
            IdentityError: it cannot be kept; nothing is left of it.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if self._jail is not None and self.directory.resolve().is_relative_to(self._jail.resolve()):
            raise IdentityError(
                f"{self.directory} lies inside of the sandbox, where agents read: no key is kept there; give "
                "the sandbox a directory of its own"
            )
        key = Ed25519PrivateKey.generate()
        address = address_of(key.public_key().public_bytes_raw())
        with _refusing(f"{self.directory} cannot be made"):
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened(writes=True) as folder:
            self._write(folder, address + SUFFIX, _HEAD + key.private_bytes_raw().hex().encode() + b"\n")
        return address

    def sign(self, address: str, message: str) -> str:
        """The signature of a message in hexadecimal, by the key of an address.

        Raises:
            IdentityError: the key is lost, damaged or open to others, or the message cannot be signed.
        """
        covered = signed_bytes(address, message)
        with self._opened() as folder:
            return self._load(folder, address).sign(covered).hex()

    def trouble(self, address: str) -> str:
        """Why a key cannot sign, in one line; empty when it can."""
        try:
            with self._opened() as folder:
                self._load(folder, address)
        except IdentityError as error:
            return str(error)
        return ""

    def destroy(self, address: str) -> bool:
        """Overwrite and remove the private key of an address; False where there was none.

        Copies that a disk or a backup made are out of reach.

        Raises:
            IdentityError: it is still there, and why.
        """
        public_key_of(address)
        if not self.directory.exists():
            return False
        name = address + SUFFIX
        where = self.directory / name
        with self._opened(writes=True) as folder, _refusing(f"the key could not be destroyed: {where}"):
            try:
                self._overwrite(folder, name)
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except FileNotFoundError:
                return False
        return True

    # -------------------------------------------------------------- files

    @contextmanager
    def _opened(self, *, writes: bool = False) -> Iterator[int]:
        """The directory as a descriptor, looked at; locked against other processes where it is written to."""
        where = self.directory
        with _refusing(f"{where} cannot be opened as a directory of keys"):
            try:
                folder = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                why = f"there are no keys here: {where} is missing; id_create ENTITY makes one"
                raise IdentityError(why) from None
        try:
            _check_private(os.fstat(folder), where, 0o700)
            if writes:
                _lock(folder, where)
                self._sweep(folder)
            yield folder
        finally:
            os.close(folder)

    @staticmethod
    def _sweep(folder: int) -> None:
        """Remove what a process left that ended while it wrote a key; its address was never returned."""
        for name in os.listdir(folder):
            if name.startswith(_NEW):
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)

    def _write(self, folder: int, name: str, content: bytes) -> None:
        """Write a file atomically."""
        new = _NEW + secrets.token_hex(8)
        try:
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                os.fchmod(file, 0o600)
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(file, rest) :]
                os.fsync(file)
            finally:
                os.close(file)
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        except OSError as error:
            for left in (new, name):
                with suppress(OSError):
                    os.unlink(left, dir_fd=folder)
            raise IdentityError(
                f"the key could not be written to {self.directory}: {error.strerror}; nothing was created"
            ) from None

    def _load(self, folder: int, address: str) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        public = public_key_of(address)
        where = self.directory / (address + SUFFIX)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with _refusing(f"the key {where} cannot be read"):
            try:
                file = os.open(where.name, flags, dir_fd=folder)
            except FileNotFoundError:
                raise IdentityError(
                    f"the private key of {address} is lost: {where} is missing; bring it back, or "
                    "id_deprecate it"
                ) from None
            try:
                _check_private(os.fstat(file), where, 0o600)
                content = os.read(file, _FILE_BYTES + 1)
            finally:
                os.close(file)
        with suppress(ValueError):
            if content.startswith(_HEAD) and len(content) == _FILE_BYTES:
                key = Ed25519PrivateKey.from_private_bytes(
                    bytes.fromhex(content[len(_HEAD) :].decode("ascii"))
                )
                if key.public_key().public_bytes_raw() == public:
                    return key
        raise IdentityError(f"the key {where} is damaged: it is not that of its address; bring the file back")

    @staticmethod
    def _overwrite(folder: int, name: str) -> None:
        file = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            status = os.fstat(file)
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                os.write(file, bytes(min(status.st_size, _FILE_BYTES)))
                os.fsync(file)
        finally:
            os.close(file)


def _check_private(status: os.stat_result, where: Path, mode: int) -> None:
    """Refuse what others than the operator can read.

    Raises:
        IdentityError: says what is wrong with it, and how it is put right.
    """
    if mode == 0o600 and not stat.S_ISREG(status.st_mode):
        raise IdentityError(f"the key {where} is no ordinary file")
    if status.st_uid != os.geteuid():
        raise IdentityError(f"{where} belongs to another user; keys are read only from files of your own")
    if status.st_mode & 0o077:
        raise IdentityError(
            f"{where} is open to others (mode {stat.S_IMODE(status.st_mode):o}): chmod {mode:o} {where}"
        )


def _lock(folder: int, where: Path) -> None:
    """Lock the directory against other processes until it is closed.

    Raises:
        IdentityError: another process keeps it.
    """
    for _ in range(_TRIES):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_WAIT_S)
        else:
            return
    raise IdentityError(f"another process is changing {where}; try again in a moment")
