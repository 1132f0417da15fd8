"""Private keys as files that only the operator can read, outside of what programs in the jail see.

One file for each key, `.pilothouse/keys/ADDRESS.key`. Nothing else ever holds one: not the journal, logs,
snapshots, exports, nor any child's environment. Source: mindX spec §1.2 (the original kept keys in the clear
under the project), issue 8 no. 5.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

from engine.mastermind.addresses import KEY_BYTES, IdentityError, address_of, public_key_of, signed_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEYS_DIRECTORY = "keys"
"""Where the keys are, in the data directory."""
SUFFIX = ".key"
_HEAD = b"pilothouse private key 1\n"
_NEW = ".new-"
_FILE_BYTES = len(_HEAD) + 2 * KEY_BYTES + 1
_TRIES, _WAIT_S = 100, 0.02


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
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise IdentityError(f"{self.directory} cannot be made: {error.strerror}") from None
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

    def addresses(self) -> tuple[str, ...]:
        """The addresses of which a key file is there, whatever is in it.

        Raises:
            IdentityError: the directory cannot be looked at.
        """
        if not self.directory.exists():
            return ()
        with self._opened():
            names = sorted(path.name for path in self.directory.iterdir())
        return tuple(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))

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
        with self._opened(writes=True) as folder:
            try:
                self._overwrite(folder, name)
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except FileNotFoundError:
                return False
            except OSError as error:
                where = self.directory / name
                raise IdentityError(f"the key could not be destroyed: {where}: {error.strerror}") from None
        return True

    # -------------------------------------------------------------- files

    @contextmanager
    def _opened(self, *, writes: bool = False) -> Iterator[int]:
        """The directory as a descriptor, looked at; locked against other processes where it is written to."""
        where = self.directory
        try:
            folder = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise IdentityError(
                f"there are no keys here: {where} is missing; id_create ENTITY makes one"
            ) from None
        except OSError as error:
            raise IdentityError(
                f"{where} cannot be opened as a directory of keys: {error.strerror}"
            ) from None
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
        """Remove what a process left that ended while it wrote a key; nobody knows its address."""
        for name in os.listdir(folder):
            if name.startswith(_NEW):
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)

    def _write(self, folder: int, name: str, content: bytes) -> None:
        """Write a file that is there as a whole or not at all."""
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
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(where.name, flags, dir_fd=folder)
        except FileNotFoundError:
            raise IdentityError(
                f"the private key of {address} is lost: {where} is missing; bring it back, or id_deprecate it"
            ) from None
        except OSError as error:
            raise IdentityError(f"the key {where} cannot be read: {error.strerror}") from None
        try:
            _check_private(os.fstat(file), where, 0o600)
            content = os.read(file, _FILE_BYTES + 1)
        except OSError as error:
            raise IdentityError(f"the key {where} cannot be read: {error.strerror}") from None
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
            found = os.fstat(file)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                os.write(file, bytes(min(found.st_size, _FILE_BYTES)))
                os.fsync(file)
        finally:
            os.close(file)


def _check_private(found: os.stat_result, where: Path, mode: int) -> None:
    """Refuse what is not the operator's alone.

    Raises:
        IdentityError: says what is wrong with it, and how it is put right.
    """
    if mode == 0o600 and not stat.S_ISREG(found.st_mode):
        raise IdentityError(f"the key {where} is no ordinary file")
    if found.st_uid != os.geteuid():
        raise IdentityError(f"{where} belongs to another user; keys are read only from files of your own")
    if found.st_mode & 0o077:
        raise IdentityError(
            f"{where} is open to others (mode {stat.S_IMODE(found.st_mode):o}): chmod {mode:o} {where}"
        )


def _lock(folder: int, where: Path) -> None:
    """Have the directory for oneself until it is closed.

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
