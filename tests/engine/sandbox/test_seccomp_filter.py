"""The filter, run by an interpreter of its own: what every call gets, on both architectures."""

from __future__ import annotations

import errno
import struct

import pytest

from engine.sandbox import seccomp as bpf
from engine.sandbox.policy import Network
from engine.sandbox.seccomp import FilterOptions, build_filter
from engine.sandbox.syscall_numbers import AARCH64, X86_64, Numbers

ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}
KERNEL = FilterOptions()
FULL = FilterOptions(unix_sockets=True, namespaces=True)


def outcome(program: bytes, number: int, *arguments: int, architecture: int) -> str:
    """What the kernel would do with a call."""
    padded = [value & (1 << 64) - 1 for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("=iIQ6Q", number, architecture, 0, *padded)
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator = at = 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x05:
                at += value
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                names = {bpf.ALLOW: "allow", bpf.NOTIFY: "notify", bpf.KILL_PROCESS: "kill"}
                return names.get(value) or errno.errorcode[value & 0xFFFF]
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


@pytest.fixture(params=list(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(machine: str, options: FilterOptions, name: str, *arguments: int) -> str:
    (number,) = Numbers(machine).of(name)
    return outcome(build_filter(options, machine), number, *arguments, architecture=ARCHITECTURES[machine])


@pytest.mark.parametrize(
    ("name", "arguments", "kernel", "full"),
    [
        ("ptrace", (), "EPERM", "EPERM"),
        ("mount", (), "EPERM", "EPERM"),
        ("keyctl", (), "EPERM", "EPERM"),
        ("io_uring_setup", (), "ENOSYS", "ENOSYS"),
        ("clone3", (), "ENOSYS", "ENOSYS"),
        ("openat2", (), "ENOSYS", "ENOSYS"),
        ("file_getattr", (), "ENOSYS", "ENOSYS"),
        ("listxattrat", (), "ENOSYS", "ENOSYS"),
        ("getxattrat", (), "ENOSYS", "ENOSYS"),
        ("pidfd_open", (), "ENOSYS", "allow"),
        ("clone", (0x1200011,), "allow", "allow"),
        ("clone", (0x10000000,), "EPERM", "EPERM"),
        ("unshare", (0x80,), "EPERM", "EPERM"),
        ("unshare", (0x200,), "allow", "allow"),
        ("inotify_add_watch", (), "EPERM", "allow"),
        ("lsetxattr", (), "ENOTSUP", "ENOTSUP"),
        ("fchmodat", (-100, 0, 0o755), "notify", "notify"),
        ("fchmodat", (-100, 0, 0o4755), "notify", "notify"),
        ("fchmod", (3, 0o2755), "notify", "notify"),
        ("utimensat", (), "notify", "notify"),
        ("fchownat", (), "notify", "notify"),
        ("openat", (-100, 0, 0o100, 0o4755), "EPERM", "EPERM"),
        ("openat", (-100, 0, 0o100, 0o755), "allow", "allow"),
        ("openat", (-100, 0, 0, 0o6000), "allow", "allow"),
        ("mknodat", (-100, 0, 0o104755), "EPERM", "EPERM"),
        ("prlimit64", (0,), "allow", "allow"),
        ("prlimit64", (77,), "EPERM", "EPERM"),
        ("setpriority", (0, 0, 5), "allow", "allow"),
        ("setpriority", (2, 0, 5), "EPERM", "EPERM"),
        ("sched_setscheduler", (77,), "EPERM", "EPERM"),
        ("ioctl", (0, 0x5401), "allow", "allow"),
        ("ioctl", (0, 0x5412), "EPERM", "EPERM"),
        ("ioctl", (0, 0x7FFF00005412), "EPERM", "EPERM"),
        ("ioctl", (0, 0x40806685), "EPERM", "EPERM"),
        ("ioctl", (0, 0x5000940E), "EPERM", "EPERM"),
        ("fcntl", (0, 4), "allow", "allow"),
        ("fcntl", (0, 1024), "EPERM", "EPERM"),
        ("socket", (1, 1), "EACCES", "allow"),
        ("socket", (2, 1), "EACCES", "EACCES"),
        ("socket", (10, 2), "EACCES", "EACCES"),
        ("socket", (16, 3), "EAFNOSUPPORT", "EAFNOSUPPORT"),
        ("socket", (40, 1), "EAFNOSUPPORT", "EAFNOSUPPORT"),
        ("socketpair", (1, 1), "allow", "allow"),
        ("socketpair", (1, 0x80801), "allow", "allow"),
        ("socketpair", (1, 2), "EACCES", "allow"),
        ("listen", (), "EACCES", "allow"),
        ("sendto", (3, 0, 0, 0x20000000), "EPERM", "EPERM"),
        ("sendto", (3, 0, 0, 0x4000), "allow", "allow"),
    ],
)
def test_a_call_gets_what_the_tier_says(
    machine: str, name: str, arguments: tuple[int, ...], kernel: str, full: str
) -> None:
    assert ask(machine, KERNEL, name, *arguments) == kernel
    assert ask(machine, FULL, name, *arguments) == full


@pytest.mark.parametrize(
    ("network", "arguments", "wanted"),
    [
        (Network.PORTS, (2, 1, 0), "allow"),
        (Network.PORTS, (2, 0x80001, 6), "allow"),
        (Network.PORTS, (10, 2, 17), "allow"),
        (Network.PORTS, (2, 1, 262), "EACCES"),
        (Network.PORTS, (2, 3, 1), "EACCES"),
        (Network.PORTS, (2, 2, 1), "EACCES"),
        (Network.PORTS, (16, 3, 0), "EAFNOSUPPORT"),
        (Network.ON, (2, 1, 0), "allow"),
        (Network.ON, (2, 1, 132), "EACCES"),
        (Network.ON, (16, 3, 0), "allow"),
        (Network.ON, (16, 3, 9), "EAFNOSUPPORT"),
        (Network.ON, (17, 3, 0), "EAFNOSUPPORT"),
    ],
)
def test_sockets_follow_the_network(
    machine: str, network: Network, arguments: tuple[int, ...], wanted: str
) -> None:
    """Behaviour 53."""
    assert ask(machine, FilterOptions(network=network), "socket", *arguments) == wanted


def test_with_ports_nothing_listens_and_tcp_goes_no_other_way(machine: str) -> None:
    ports = FilterOptions(network=Network.PORTS, unix_sockets=True, namespaces=True)
    assert ask(machine, ports, "listen") == "EACCES"
    assert ask(machine, ports, "setsockopt", 3, 6, 30) == "EPERM"
    assert ask(machine, ports, "setsockopt", 3, 6, 1) == "allow"
    assert ask(machine, FilterOptions(network=Network.ON), "listen") == "allow"


def test_another_architectures_calls_kill_the_program(machine: str) -> None:
    program = build_filter(KERNEL, machine)
    other = {"x86_64": 0x40000003, "aarch64": 0x40000028}[machine]
    assert outcome(program, 1, architecture=other) == "kill"


def test_x32_calls_kill_the_program() -> None:
    program = build_filter(KERNEL, "x86_64")
    assert outcome(program, 0x40000000 + 39, architecture=X86_64) == "kill"


def test_without_a_broker_set_id_bits_are_refused_and_the_rest_is_allowed(machine: str) -> None:
    alone = FilterOptions(broker=False)
    assert ask(machine, alone, "fchmod", 3, 0o4755) == "EPERM"
    assert ask(machine, alone, "fchmod", 3, 0o755) == "allow"


def test_without_a_signal_scope_the_cockpit_is_named(machine: str) -> None:
    old = FilterOptions(landlock_abi=2, protected=(4711, -4700, -1))
    assert ask(machine, old, "kill", 4711, 9) == "EPERM"
    assert ask(machine, old, "kill", -1, 9) == "EPERM"
    assert ask(machine, old, "tgkill", 4711, 4711, 9) == "EPERM"
    assert ask(machine, old, "kill", 5000, 9) == "allow"
    assert ask(machine, old, "pidfd_send_signal", 3, 9) == "EPERM"
    assert ask(machine, old, "truncate") == "EPERM"
    assert ask(machine, KERNEL, "truncate") == "allow"


def test_ordinary_calls_are_allowed(machine: str) -> None:
    program = build_filter(KERNEL, machine)
    allowed = sum(
        outcome(program, number, architecture=ARCHITECTURES[machine]) == "allow" for number in range(470)
    )
    assert allowed > 300
    assert len(program) // 8 < 400


def test_a_machine_without_a_table_has_no_filter() -> None:
    with pytest.raises(KeyError):
        build_filter(KERNEL, "riscv64")
