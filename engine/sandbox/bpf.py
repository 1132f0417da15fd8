"""An assembler for the small programs that seccomp runs at every system call.

Source: sandbox spec §2 (the BPF assembler), `linux/filter.h`, `linux/seccomp.h`.
"""

from __future__ import annotations

import struct

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
        """A label's name that nobody has."""
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
