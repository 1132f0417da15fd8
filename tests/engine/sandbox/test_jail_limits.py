"""What a command may use up: sandbox spec §6 cases 18, 46, 57 and 59, in every tier."""

from __future__ import annotations

import json

import pytest

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import Room, takes_seconds
from tests.rounds import FULL

pytestmark = takes_seconds(full=FULL)

MIB = 1 << 20
GREEDY = """
import errno, json, mmap, os
found = {}
def attempt(name, work):
    read, write = os.pipe()
    if os.fork() == 0:
        try: said = work() or "through"
        except OSError as error: said = errno.errorcode[error.errno]
        except MemoryError: said = "MemoryError"
        os.write(write, said.encode()); os._exit(0)
    os.close(write)
    with os.fdopen(read) as file: found[name] = file.read()
def until_refused(work):
    kept = []
    while len(kept) < 100_000: kept.append(work(len(kept)))
def file_in(directory):
    def make(number):
        with open(f"{directory}/greedy{number}", "wb") as file: file.write(b"x" * (2 << 20))
    return make
def memory(size):
    one = os.memfd_create("m")
    if os.write(one, b"x" * size) < size: os.write(one, b"x")
    return one
def full_pipe(_):
    ends = os.pipe(); os.set_blocking(ends[1], False)
    try:
        while True: os.write(ends[1], b"x" * 4096)
    except BlockingIOError: return ends
def large(): return os.open("large", os.O_CREAT | os.O_WRONLY)
attempt("heap", lambda: bytearray(500 << 20) and None)
attempt("address space", lambda: mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) and None)
attempt("descriptors", lambda: until_refused(lambda _: os.open("/dev/null", os.O_RDONLY)))
attempt("files in memory", lambda: until_refused(lambda _: memory(2 << 20)))
attempt("one file in memory", lambda: memory(9 << 20) and None)
attempt("pipes", lambda: until_refused(full_pipe))
attempt("one large file", lambda: os.truncate(large(), 1 << 40))
attempt("space for one large file", lambda: os.posix_fallocate(large(), 0, 1 << 30))
for place in ("/tmp", "/dev/shm"): attempt(place, lambda: until_refused(file_in(place)))
print(json.dumps(found))
"""


def test_each_way_to_take_memory_descriptors_and_space_has_an_end(place: Room, tier: Tier) -> None:
    done = place.python(
        GREEDY, tier=tier, memory_bytes=300 * MIB, address_bytes=2 << 30, file_bytes=4 * MIB, open_files=32,
        scratch_bytes=16 * MIB,
    )  # fmt: skip
    assert done["ended"] == "exit", done
    scratch = "ENOSPC" if tier is Tier.FULL else "EACCES"
    assert json.loads(done["stdout"]) == {
        "heap": "MemoryError",
        "address space": "ENOMEM",
        "descriptors": "EMFILE",
        "files in memory": "EMFILE",
        "one file in memory": "EFBIG",
        "pipes": "EMFILE",
        "one large file": "EFBIG",
        "space for one large file": "EFBIG",
        "/tmp": scratch,
        "/dev/shm": scratch,
    }


def test_memory_in_files_without_a_name_counts(place: Room, tier: Tier) -> None:
    script = """
import os, time
held = [os.memfd_create("m") for _ in range(8)]
for one in held: os.write(one, bytes(40 << 20))
time.sleep(60)
"""
    done = place.python(script, tier=tier, memory_bytes=150 * MIB, grace_s=0.1)
    assert (done["ended"], done["alive"]) == ("memory", []), done


@pytest.mark.parametrize(
    "script",
    [
        "import os\nos.posix_fallocate(os.open('f', os.O_CREAT | os.O_WRONLY), 0, 64 << 20)",
        "f = open('f', 'wb')\nfor n in range(64): f.seek(n << 30); f.write(b'x' * (1 << 20)); f.flush()",
        "import os\nfor n in range(300): os.mkdir('d' * 20); os.chdir('d' * 20)\n"
        "open('f', 'wb').write(b'x' * (64 << 20))",
        "import os\nf = open('f', 'wb'); os.unlink('f'); f.write(b'x' * (64 << 20)); f.flush()",
        "import os\nos.mkdir('d'); f = open('d/f', 'wb'); os.chmod('d', 0)\n"
        "f.write(b'x' * (64 << 20)); f.flush()",
    ],
    ids=[
        "set aside",
        "with holes",
        "deeper than a path is long",
        "removed while open",
        "in a closed directory",
    ],
)
def test_a_full_sandbox_ends_the_command(place: Room, tier: Tier, script: str) -> None:
    """Behaviour 55."""
    done = place.python(
        f"{script}\nimport time; time.sleep(60)", tier=tier, disk_bytes=16 * MIB, disk_depth=1000,
        file_bytes=1 << 40, grace_s=0.1,
    )  # fmt: skip
    assert (done["ended"], done["alive"]) == ("disk", []), done
    assert done["problem"]
