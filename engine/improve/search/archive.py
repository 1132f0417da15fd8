"""What a campaign has tried, kept for a model that is asked again: diverse variants, not only the best.

Variants lie on islands by what they change: functions of Python files, or files. Of an island those are kept
that no other one beats in gain, size and risk at once (a Pareto front), the newest first where one is not
better than the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.improve.code.source import parse_source, shapes_of
from engine.improve.ports import Variant

ISLANDS, OF_ONE = 5, 2
"""Islands that are kept, those with the best variant first, and variants of each."""


def island(variant: Variant, base: Mapping[str, str]) -> tuple[str, ...]:
    """What a variant changes: `path:function` of Python files, else paths."""
    names: set[str] = set()
    for path, text in variant.texts.items():
        old, new = parse_source(base.get(path, "")), parse_source(text or "")
        if old is None or new is None or not path.endswith(".py"):
            names.add(path)
            continue
        mine, theirs = shapes_of(old), shapes_of(new)
        names |= {f"{path}:{name}" for name in mine.keys() | theirs if mine.get(name) != theirs.get(name)}
    return tuple(sorted(names))


def archive(variants: Sequence[Variant], base: Mapping[str, str]) -> list[Variant]:
    """The variants that are kept.

    Args:
        variants: all, the oldest first.
        base: the texts that they build on, by path.
    """
    islands: dict[tuple[str, ...], list[Variant]] = {}
    for variant in reversed(variants):
        islands.setdefault(island(variant, base), []).append(variant)
    fronts = [
        [one for one in those if not any(other.beats(one) for other in those)][:OF_ONE]
        for those in islands.values()
    ]
    fronts.sort(key=lambda those: min(variant.risk for variant in those))
    return [variant for those in fronts[:ISLANDS] for variant in those]
