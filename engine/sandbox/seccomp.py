"""The system calls that a jailed program may not make.

Landlock alone is no jail: sockets by path, UDP, metadata of files outside, io_uring, the keyring and
others pass it by. The filter denies these, and says "no such call" where
programs know how to do without. It is built in the cockpit and reaches the supervisor as ready bytes.

An assembler for the small programs that seccomp runs at every system call.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Iterable
from functools import partial

from engine.sandbox.policy import Network
from engine.sandbox.syscall_numbers import X86_64, Numbers, named
from engine.value import dataclass

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
NOTIFY = 0x7FC00000
ERRNO = 0x00050000

NUMBER, ARCHITECTURE = 0, 4
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT = 0x05, 0x15, 0x35, 0x45
_FARTHEST = 255


def low(argument: int) -> int:
    """Offset of the low 32 bits of an argument, 0 to 5, on a little-endian machine."""
    return 16 + 8 * argument


def errno_action(code: int) -> int:
    """The action that fails the call with this errno."""
    return ERRNO | code


class Assembler:
    """Collects instructions; a jump goes to a label, or to the next instruction where the label is empty."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, str, str]] = []
        self._labels: dict[str, int] = {}
        self._made = 0

    def fresh(self) -> str:
        """A label's name that is not used yet."""
        self._made += 1
        return f"label-{self._made}"

    def label(self, name: str) -> None:
        """Give the next instruction a name."""
        self._labels[name] = len(self._code)

    def load(self, offset: int) -> None:
        """Take a word of the call's description into the accumulator."""
        self._code.append((_LOAD, offset, "", ""))

    def mask(self, bits: int) -> None:
        """Keep these bits of the accumulator."""
        self._code.append((_AND, bits, "", ""))

    def equal(self, value: int, yes: str = "", no: str = "") -> None:
        """Jump by whether the accumulator is the value."""
        self._code.append((_JUMP_EQUAL, value, yes, no))

    def at_least(self, value: int, yes: str = "", no: str = "") -> None:
        """Jump by whether the accumulator, unsigned, is the value or more."""
        self._code.append((_JUMP_GREATER_EQUAL, value, yes, no))

    def any_bit(self, mask: int, yes: str = "", no: str = "") -> None:
        """Jump by whether the accumulator has any bit of the mask."""
        self._code.append((_JUMP_ANY_BIT, mask, yes, no))

    def go(self, to: str) -> None:
        """Jump, however far."""
        self._code.append((_JUMP, 0, to, ""))

    def end(self, action: int) -> None:
        """End the program with an action."""
        self._code.append((_RETURN, action, "", ""))

    def assemble(self) -> bytes:
        """The program, 8 bytes an instruction.

        Raises:
            ValueError: a conditional jump goes farther than 255 instructions, or backwards.
        """
        out = []
        for at, (code, value, yes, no) in enumerate(self._code):
            if code == _JUMP:
                out.append(struct.pack("=HBBI", code, 0, 0, self._labels[yes] - at - 1))
            else:
                out.append(struct.pack("=HBBI", code, self._way(at, yes), self._way(at, no), value))
        return b"".join(out)

    def _way(self, at: int, to: str) -> int:
        distance = self._labels[to] - at - 1 if to else 0
        if not 0 <= distance <= _FARTHEST:
            raise ValueError(f"a jump of {distance} instructions at {at} is not possible")
        return distance


_REFUSED = errno_action(errno.EPERM)
_DENIED = errno_action(errno.EACCES)
_UNKNOWN = errno_action(errno.ENOSYS)
_NO_FAMILY = errno_action(errno.EAFNOSUPPORT)
_UNSUPPORTED = errno_action(errno.EOPNOTSUPP)

_MODES = (("chmod fchmod", 1), ("fchmodat fchmodat2", 2))
_OWNERS_AND_TIMES = "chown lchown fchown fchownat utime utimes futimesat utimensat"
_SIGNALS = "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo"

_SET_ID = 0o6000
_O_CREAT_OR_TMPFILE = 0o100 | 0o20000000
_NEW_NAMESPACES = 0x7E020000
_NEW_TIME = 0x80
_X32 = 0x40000000
_MSG_FASTOPEN = 0x20000000
_TCP, _TCP_FASTOPEN_CONNECT = 6, 30
_COMMANDS = (
    *(0x5412, 0x541C, 0x541D, 0x5423),  # TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD
    *(0x40086602, 0x401C5820, 0x40087602, 0x40806685),
    *(0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x50009418, 0x5000943F),
)
"""The second line, FS_IOC_SETFLAGS, FSSETXATTR, SETVERSION and ENABLE_VERITY, changes files open for reading;
the third, of btrfs, makes and removes subvolumes in directories open for reading, past Landlock (not run)."""
_WATCHES = (1024, 1026)
"""F_SETLEASE, by which an owner keeps others from opening a file that it may only read, and F_NOTIFY."""
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _SEQUENCED = 1, 2, 5
_TYPE = 0xF
_PROTOCOLS = {_STREAM: (0, 6), _DATAGRAM: (0, 17)}
"""TCP and UDP only: MPTCP and SCTP are not subject to Landlock's rules on ports."""
_CHUNK = 100


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """What the filter depends on."""

    network: Network = Network.OFF
    unix_sockets: bool = False
    """Whether AF_UNIX sockets may be made; the rule is in `engine.sandbox.jail`."""
    namespaces: bool = False
    """Whether files outside cannot be named, so that watching them is harmless."""
    broker: bool = True
    """Whether a broker answers for changes of metadata."""
    landlock_abi: int = 7
    protected: tuple[int, ...] = ()
    """Process ids that no signal may reach, where Landlock cannot scope signals; -1 means all."""


def build_filter(options: FilterOptions, machine: str) -> bytes:
    """The filter as BPF instructions.

    Raises:
        KeyError: there is no table of system calls for the machine.
    """
    numbers = Numbers(machine)
    program = Assembler()
    _enter(program, numbers)
    never = named("never")
    if not options.namespaces:
        never += " inotify_add_watch"
    if options.landlock_abi < 3:
        never += " truncate"
    _forbid(program, numbers.of(never), _REFUSED)
    _forbid(program, numbers.of(named("unsupported")), _UNSUPPORTED)  # among them the access lists of devices
    # By number, it would say which processes there are; nobody needs it for children of their own.
    unknown = named("unknown") + ("" if options.namespaces else " pidfd_open")
    _forbid(program, numbers.of(unknown), _UNKNOWN)
    _metadata(program, numbers, options)
    _new_files(program, numbers)
    _other_processes(program, numbers, options)
    _namespaces(program, numbers)
    _guard(program, numbers.of("ioctl"), lambda: _unless(program, low(1), _COMMANDS, _REFUSED))
    _guard(program, numbers.of("fcntl"), lambda: _unless(program, low(1), _WATCHES, _REFUSED))
    _sockets(program, numbers, options)
    program.end(ALLOW)
    return program.assemble()


def _enter(program: Assembler, numbers: Numbers) -> None:
    """Kill a program that calls by another architecture's table; leave the call's number loaded."""
    native, known = program.fresh(), program.fresh()
    program.load(ARCHITECTURE)
    program.equal(numbers.architecture, yes=native)
    program.end(KILL_PROCESS)
    program.label(native)
    program.load(NUMBER)
    if numbers.architecture == X86_64:
        program.at_least(_X32, no=known)
        program.end(KILL_PROCESS)
        program.label(known)


def _forbid(program: Assembler, numbers: list[int], action: int) -> None:
    """End with the action for each of the calls."""
    for start in range(0, len(numbers), _CHUNK):
        chunk = numbers[start : start + _CHUNK]
        hit, after = program.fresh(), program.fresh()
        for number in chunk[:-1]:
            program.equal(number, yes=hit)
        program.equal(chunk[-1], no=after)
        program.label(hit)
        program.end(action)
        program.label(after)


def _guard(program: Assembler, numbers: list[int], body: Callable[[], None]) -> None:
    """For each of the calls run the body, which ends the program; the others go past it."""
    for number in numbers:
        inside, after = program.fresh(), program.fresh()
        program.equal(number, yes=inside)
        program.go(after)
        program.label(inside)
        body()
        program.label(after)


def _unless(program: Assembler, offset: int, values: Iterable[int], action: int) -> None:
    """The action when the word is one of the values, else the call is allowed."""
    hit = program.fresh()
    program.load(offset)
    for value in values:
        program.equal(value, yes=hit)
    program.end(ALLOW)
    program.label(hit)
    program.end(action)


def _only(program: Assembler, target: Iterable[tuple[int, int]], otherwise: int, action: int = ALLOW) -> None:
    """The action when each word at an offset has its value."""
    other = program.fresh()
    for offset, value in target:
        program.load(offset)
        program.equal(value, no=other)
    program.end(action)
    program.label(other)
    program.end(otherwise)


def _if_bits(program: Assembler, offset: int, bits: int, action: int, otherwise: int = ALLOW) -> None:
    hit = program.fresh()
    program.load(offset)
    program.any_bit(bits, yes=hit)
    program.end(otherwise)
    program.label(hit)
    program.end(action)


def _metadata(program: Assembler, numbers: Numbers, options: FilterOptions) -> None:
    """All of it goes to the broker; without one only set-id bits are held back.

    In namespaces too: devices, the global entries of /proc and inherited descriptors are the host's own.
    """
    answered = NOTIFY if options.broker else _REFUSED
    for names, mode in _MODES:
        otherwise = answered if options.broker else ALLOW
        _guard(
            program, numbers.of(names), partial(_if_bits, program, low(mode), _SET_ID, answered, otherwise)
        )
    if options.broker:
        _forbid(program, numbers.of(_OWNERS_AND_TIMES), NOTIFY)


def _new_files(program: Assembler, numbers: Numbers) -> None:
    """No file comes into being with a set-id bit."""
    for name, mode in (("creat", 1), ("mknod", 1), ("mknodat", 2)):
        _guard(program, numbers.of(name), partial(_if_bits, program, low(mode), _SET_ID, _REFUSED))
    for name, flags in (("open", 1), ("openat", 2)):
        _guard(program, numbers.of(name), partial(_opened, program, flags))


def _opened(program: Assembler, flags: int) -> None:
    """The mode, the argument after the flags, counts only when a file may be made."""
    made = program.fresh()
    program.load(low(flags))
    program.any_bit(_O_CREAT_OR_TMPFILE, yes=made)
    program.end(ALLOW)
    program.label(made)
    _if_bits(program, low(flags + 1), _SET_ID, _REFUSED)


def _other_processes(program: Assembler, numbers: Numbers, options: FilterOptions) -> None:
    """Limits, priorities and scheduling only of the caller itself."""
    own = "prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr"
    _guard(program, numbers.of(own), lambda: _only(program, [(low(0), 0)], _REFUSED))
    for name, process in (("setpriority", 0), ("ioprio_set", 1)):
        pairs = [(low(0), process), (low(1), 0)]
        _guard(program, numbers.of(name), partial(_only, program, pairs, _REFUSED))
    if options.protected:
        words = [pid & 0xFFFFFFFF for pid in options.protected]
        _guard(program, numbers.of(_SIGNALS), lambda: _unless(program, low(0), words, _REFUSED))
        _forbid(program, numbers.of("pidfd_send_signal"), _REFUSED)


def _namespaces(program: Assembler, numbers: Numbers) -> None:
    _guard(program, numbers.of("clone"), lambda: _if_bits(program, low(0), _NEW_NAMESPACES, _REFUSED))
    bits = _NEW_NAMESPACES | _NEW_TIME
    _guard(program, numbers.of("unshare"), lambda: _if_bits(program, low(0), bits, _REFUSED))


def _sockets(program: Assembler, numbers: Numbers, options: FilterOptions) -> None:
    _guard(program, numbers.of("socket"), lambda: _socket(program, options))
    _guard(program, numbers.of("socketpair"), lambda: _socketpair(program, options))
    if options.network is Network.ON:
        return
    # A TCP socket that listens without a name gets a port of its own, past Landlock's rule on binding.
    if options.network is Network.PORTS or not options.unix_sockets:
        _forbid(program, numbers.of("listen"), _DENIED)
    for name, flags in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        _guard(program, numbers.of(name), partial(_if_bits, program, low(flags), _MSG_FASTOPEN, _REFUSED))
    fast_open = [(low(1), _TCP), (low(2), _TCP_FASTOPEN_CONNECT)]
    _guard(program, numbers.of("setsockopt"), partial(_only, program, fast_open, ALLOW, _REFUSED))


def _socket(program: Assembler, options: FilterOptions) -> None:
    """Unix sockets by the option, TCP and UDP by the network, nothing else."""
    allowed, denied, internet = program.fresh(), program.fresh(), program.fresh()
    program.load(low(0))
    program.equal(_AF_UNIX, yes=allowed if options.unix_sockets else denied)
    for family in (_AF_INET, _AF_INET6):
        program.equal(family, yes=denied if options.network is Network.OFF else internet)
    if options.network is Network.ON:
        other = program.fresh()
        program.equal(_AF_NETLINK, no=other)
        program.load(low(2))
        program.equal(0, yes=allowed)  # NETLINK_ROUTE, to read addresses
        program.label(other)
    program.end(_NO_FAMILY)
    program.label(internet)
    for kind, protocols in _PROTOCOLS.items():
        other = program.fresh()
        program.load(low(1))
        program.mask(_TYPE)
        program.equal(kind, no=other)
        program.load(low(2))
        for protocol in protocols:
            program.equal(protocol, yes=allowed)
        program.label(other)
    program.label(denied)
    program.end(_DENIED)
    program.label(allowed)
    program.end(ALLOW)


def _socketpair(program: Assembler, options: FilterOptions) -> None:
    """Pairs of connected streams; a datagram socket could be connected again, to a name outside."""
    kinds = [_STREAM, _SEQUENCED, *([_DATAGRAM] if options.unix_sockets else [])]
    allowed, denied = program.fresh(), program.fresh()
    program.load(low(0))
    program.equal(_AF_UNIX, no=denied)
    program.load(low(1))
    program.mask(_TYPE)
    for kind in kinds:
        program.equal(kind, yes=allowed)
    program.label(denied)
    program.end(_DENIED)
    program.label(allowed)
    program.end(ALLOW)
