"""Identities: keys that nobody else can read, signatures that anyone can check."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.improve import keys as keys_module
from engine.improve.keys import (
    IdentityError,
    KeyRing,
    address_of,
    public_key_of,
    signed_bytes,
    verify_signature,
)
from tests.mastermind.agents_flight import desk_flight, desk_of

MESSAGES = [
    "a",
    "release 1.2 is fine",
    " blanks stay  ",
    "nul \0, escape \x1b[31mred\x1b[0m, bidi \u202eabc\u202c",
    "line one\r\nline two\n",
    "é and é are not the same",
    "字" * 5_000,
]


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path / "keys")


def key_file(keys: KeyRing, address: str) -> Path:
    return keys.directory / f"{address}.key"


async def test_a_signature_is_verified_by_the_listed_address(tmp_path: Path) -> None:
    """Behaviour 13."""
    async with desk_flight(tmp_path) as (flight, desk):
        await desk.create(desk.understand("bdi_agent pilot"))
        (row,) = await desk.identities.rows()
        assert (row.entity, row.status, row.trouble) == ("pilot", "active", "")
        for message in MESSAGES:
            signed = await desk.sign("pilot", message)
            assert signed.address == row.address
            assert await desk.identities.verify(row.address, signed.signature, message) is not None
            assert (await desk.identities.verify(row.address, signed.signature, message)).ok
            assert not (await desk.identities.verify(row.address, signed.signature, message + " ")).ok
        assert (await desk.sign("pilot", "a\u202eb")).unseen == 1
        await flight.reopen()
        desk = await desk_of(flight)
        assert [one.address for one in await desk.identities.rows()] == [row.address]
        again = await desk.sign(row.address[:12], "after a night")
        found = await desk.identities.verify(row.address, again.signature, "after a night")
        assert (found.ok, found.entity) == (True, "pilot")


def test_a_signature_covers_its_domain_and_its_address(keys: KeyRing) -> None:
    one, other = keys.create(), keys.create()
    signature = keys.sign(one, "pay")
    assert verify_signature(one, signature, "pay")
    assert not verify_signature(other, signature, "pay")
    assert signed_bytes(one, "pay").startswith(b"Pilothouse signed message, version 1\n")
    # What was signed elsewhere for the bare text is no message signed here.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    raw = bytes.fromhex(key_file(keys, one).read_text().splitlines()[1])
    assert not verify_signature(one, Ed25519PrivateKey.from_private_bytes(raw).sign(b"pay").hex(), "pay")


def test_an_address_with_a_wrong_character_is_none(keys: KeyRing) -> None:
    address = keys.create()
    assert address_of(public_key_of(address)) == address
    assert re.fullmatch(r"ph1[a-z2-7]{56}", address)
    for place in range(3, len(address)):
        other = "a" if address[place] != "a" else "b"
        with pytest.raises(IdentityError, match="checksum"):
            public_key_of(address[:place] + other + address[place + 1 :])
    for wrong in ("", "ph1", address.upper(), address + "a", "\x1b[2J", "../" + address, address + "\n"):
        with pytest.raises(IdentityError, match="no address") as told:
            public_key_of(wrong)
        assert "\n" not in str(told.value)


def test_hostile_signatures_and_messages_are_refused_in_one_line(keys: KeyRing) -> None:
    address = keys.create()
    signature = keys.sign(address, "m")
    for wrong in ("", "00", signature[:-2], signature + "00", "zz" * 64, "é" * 128, "\0"):
        with pytest.raises(IdentityError, match="no signature"):
            verify_signature(address, wrong, "m")
    assert verify_signature(address, signature.upper(), "m")
    assert not verify_signature(address, "00" * 64, "m")
    for message in ("", "a\ud800", "x" * 1_000_001):
        with pytest.raises(IdentityError) as told:
            keys.sign(address, message)
        assert "\n" not in str(told.value)


def test_keys_are_the_operators_alone(keys: KeyRing) -> None:
    previous = os.umask(0)
    try:
        address = keys.create()
    finally:
        os.umask(previous)
    path = key_file(keys, address)
    assert (keys.directory.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    assert [one.name for one in keys.directory.iterdir()] == [path.name]
    path.chmod(0o644)
    with pytest.raises(IdentityError, match=r"open to others \(mode 644\): chmod 600 "):
        keys.sign(address, "m")
    path.chmod(0o600)
    keys.directory.chmod(0o755)
    with pytest.raises(IdentityError, match=r"mode 755\): chmod 700 "):
        keys.sign(address, "m")
    with pytest.raises(IdentityError, match="chmod 700"):
        keys.create()


def damaged(path: Path) -> Iterator[tuple[str, str]]:
    """Ways in which a key can be no longer what it was, each with what is said of it."""
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-3] ^= 1
    for content in (b"", whole[:-10], bytes(flipped), whole + b"x", b"\xff" * len(whole), b"\0" * 10**6):
        path.write_bytes(content)
        yield "damaged", f"{len(content)} bytes"
    path.unlink()
    yield "lost", "no file"
    path.symlink_to(path.with_name("elsewhere"))
    yield "cannot be read", "a link"
    path.unlink()
    path.mkdir(mode=0o700)
    yield "no ordinary file", "a directory"
    path.rmdir()
    os.mkfifo(path, 0o600)
    yield "no ordinary file", "a pipe"


def test_a_lost_or_damaged_key_is_one_clear_line(keys: KeyRing) -> None:
    address, other = keys.create(), keys.create()
    for word, how in damaged(key_file(keys, address)):
        told = keys.trouble(address)
        assert word in told, how
        assert "\n" not in told
        with pytest.raises(IdentityError, match=word):
            keys.sign(address, "m")
    assert keys.trouble(other) == ""
    key_file(keys, other).rename(keys.directory / f"{address}.new")
    (keys.directory / f"{address}.new").rename(key_file(keys, other))
    assert keys.trouble(other) == ""


def test_a_full_disk_leaves_nothing(keys: KeyRing) -> None:
    keys.create()
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from engine.improve.keys import KeyRing\n"
        "from engine.improve.keys import IdentityError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))\n"
        "try: KeyRing(Path(sys.argv[1])).create()\n"
        "except IdentityError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(keys.directory)], capture_output=True, text=True, check=True
    )
    assert "could not be written" in done.stdout
    assert done.stdout.strip().endswith("nothing was created")
    assert done.stdout.count("\n") == 1
    assert len(list(keys.directory.iterdir())) == 1


def test_two_processes_take_turns(keys: KeyRing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "_TRIES", 2)
    first = keys.create()
    folder = os.open(keys.directory, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with pytest.raises(IdentityError, match="another process is changing"):
            keys.create()
        assert keys.sign(first, "m")
    finally:
        os.close(folder)
    (keys.directory / ".new-0123").write_bytes(b"what a killed process left")
    second = keys.create()
    assert {path.stem for path in keys.directory.iterdir()} == {first, second}
    assert not (keys.directory / ".new-0123").exists()


async def test_an_identity_is_given_up_for_good(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        made = await desk.identities.create("mastermind", actor="operator:ann")
        assert made.new
        assert not (await desk.identities.create("mastermind", actor="operator:ann")).new
        address = made.identity.address
        signed = await desk.sign("mastermind", "before")
        file = tmp_path / ".pilothouse" / "keys" / f"{address}.key"
        assert file.exists()
        assert "destroyed" in desk.identities.deprecation("mastermind")
        assert "its private key was destroyed" in await desk.identities.deprecate(
            "mastermind", "old\x1b[2J\nnow", actor="operator:ann"
        )
        assert not file.exists()
        (row,) = await desk.identities.rows()
        assert (row.status, row.reason) == ("deprecated", "old now")
        with pytest.raises(IdentityError, match="given up and signs no more"):
            await desk.sign("mastermind", "after")
        found = await desk.identities.verify(address, signed.signature, "before")
        assert (found.ok, found.deprecated) == (True, True)
        assert "already" in await desk.identities.deprecate(address, actor="operator:ann")
        second = await desk.identities.create("mastermind", actor="operator:ann")
        assert second.new
        assert second.identity.address != address
        # What an end between event and destruction left behind is destroyed when it is done again.
        file.write_text("left")
        file.chmod(0o600)
        assert "destroyed" in await desk.identities.deprecate(address, actor="operator:ann")
        assert not file.exists()
        with pytest.raises(IdentityError, match="has no identity"):
            await desk.identities.deprecate("nobody\x1b[2J", actor="operator:ann")
        await flight.reopen()
        assert [one.status for one in await (await desk_of(flight)).identities.rows()] == [
            "deprecated",
            "active",
        ]


@pytest.mark.parametrize(
    "entity", ["", "../x", "to", "workspace", "a b", "A", "x" * 40, "\x1b[2J", "pilot\n"]
)
async def test_what_is_no_name_has_no_identity(tmp_path: Path, entity: str) -> None:
    async with desk_flight(tmp_path) as (_, desk):
        with pytest.raises(IdentityError) as told:
            await desk.identities.create(entity, actor="operator:ann")
        assert str(told.value).isprintable()
        assert not (tmp_path / ".pilothouse" / "keys").exists()


async def test_no_key_is_kept_where_agents_read(tmp_path: Path) -> None:
    async with desk_flight(tmp_path, EngineConfig(sandbox=tmp_path)) as (_, desk):
        made = await desk.create(desk.understand("bdi_agent pilot"))
        assert "no key is kept there" in made.message
        assert made.address == ""
        with pytest.raises(IdentityError, match="inside of the sandbox"):
            await desk.identities.create("pilot", actor="operator:ann")
        assert not (tmp_path / ".pilothouse" / "keys").exists()


async def test_a_private_key_is_nowhere_else(tmp_path: Path) -> None:
    async with desk_flight(tmp_path) as (flight, desk):
        await desk.create(desk.understand("bdi_agent pilot list the files"))
        signed = await desk.sign("pilot", "hello")
        path = tmp_path / ".pilothouse" / "keys" / f"{signed.address}.key"
        # Neither a program in the jail nor a file command sees it.
        peek = f"import os, sys; print(os.environ); print(open({str(path)!r}).read())"
        out = f"../.pilothouse/keys/{path.name}"
        await flight.do(cmd.CallTool, command="run", args={"command": ["python", "-c", peek]})
        await flight.do(cmd.CallTool, command="read", args={"path": out})
        await flight.until(lambda s: s.operator_actions == 2 and not s.requests and not s.busy)
        ended = [one for one in await flight.events() if one.kind == "action.finished"]
        assert [json.loads(one.body)["status"] for one in ended] == ["FAILURE", "ERROR"]
        assert "PermissionError" in ended[0].body or "FileNotFoundError" in ended[0].body
        secret = bytes.fromhex(path.read_text().splitlines()[1])
    wanted = (
        secret,
        secret.hex().encode(),
        base64.b64encode(secret).rstrip(b"="),
        str(list(secret)).encode(),
    )
    for file in tmp_path.rglob("*"):
        if file.is_file() and file != path:
            content = file.read_bytes()
            assert not any(form in content for form in wanted), file
