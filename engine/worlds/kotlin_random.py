"""Kotlin's `Random(seed)`, the xorwow generator: the explorer's recorded runs come out draw for draw."""

from __future__ import annotations

from collections.abc import Sequence

_MASK = 0xFFFF_FFFF
_STEP = 362_437
_WARM_UP = 64
_SIGN = 0x8000_0000


class KotlinRandom:
    """Whole numbers as Kotlin's standard library draws them for an `Int` seed (spec BDI §3.1)."""

    def __init__(self, seed: int) -> None:
        if not -_SIGN <= seed < _SIGN:
            raise ValueError(f"the seed {seed} does not fit 32 bits: choose one from {-_SIGN} to {_SIGN - 1}")
        x, y = seed & _MASK, (seed >> 31) & _MASK
        self._x, self._y, self._z, self._w, self._v = x, y, 0, 0, ~x & _MASK
        self._addend = (x << 10 & _MASK) ^ (y >> 4)
        for _ in range(_WARM_UP):
            self._next()

    @property
    def state(self) -> list[int]:
        """Where the sequence stands."""
        return [self._x, self._y, self._z, self._w, self._v, self._addend]

    @classmethod
    def standing_at(cls, state: Sequence[int]) -> KotlinRandom:
        """A generator that goes on from such a state."""
        made = cls(0)
        made._x, made._y, made._z, made._w, made._v, made._addend = (int(one) & _MASK for one in state)
        return made

    def _next(self) -> int:
        t = self._x ^ self._x >> 2
        self._x, self._y, self._z, self._w = self._y, self._z, self._w, self._v
        t = (t ^ t << 1 ^ self._v ^ self._v << 4) & _MASK
        self._v = t
        self._addend = (self._addend + _STEP) & _MASK
        return (t + self._addend) & _MASK

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1, all alike likely.

        Raises:
            ValueError: the bound is not from 1 to 2³¹ - 1.
        """
        if not 0 < bound < _SIGN:
            raise ValueError(f"cannot draw below {bound}: the bound lies from 1 to {_SIGN - 1}")
        if bound & -bound == bound:
            # A power of two takes the upper bits; for 1 that is none of them, yet a number is drawn.
            return self._next() >> (33 - bound.bit_length())
        while True:
            bits = self._next() >> 1
            value = bits % bound
            # Kotlin sees an overflow of 32 bits here: the last, incomplete run of `bound` numbers.
            if bits - value + bound - 1 < _SIGN:
                return value
