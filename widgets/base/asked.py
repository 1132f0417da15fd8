"""A question to the operator, with answers that are chosen by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from rich.cells import cell_len

from engine.core.text import clean_line
from engine.value import dataclass
from widgets.base.text_layout import Piece, Pieces, wrap


@dataclass(frozen=True, slots=True)
class AskOption:
    """One answer that can be chosen by its number."""

    label: str
    text: Literal["", "may", "must"] = ""
    """Whether it goes with a text."""
    draft: str = ""
    """What the text is at first, where it is one to be edited."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an agent asks of the operator."""

    id: str
    title: str
    question: str
    options: tuple[AskOption, ...] = ()
    context: str = ""
    free: bool = False
    """Whether any text may be the answer."""
    waited: str = ""
    more: int = 0
    """How many further questions the agent has."""


def asked_lines(asked: Asked, width: int, height: int, *, who: str = "") -> tuple[Pieces, ...]:
    """A question with its answers by number, in lines of at most `width` cells.

    Args:
        asked: the question.
        width: cells of a line.
        height: lines that are seen; the question is cut so that the answers are among them.
        who: the agent that asks, where it is to be named.
    """
    more = f" · {asked.more} more" if asked.more else ""
    title, name = clean_line(asked.title, limit=200), clean_line(who, limit=60)
    title = title if not name or title.startswith(f"{name}:") else f"{name}: {title}"
    head = (
        Piece("? ", "warning"),
        Piece(title, "strong"),
        Piece(f" {clean_line(asked.id)} · {asked.waited}{more}", "dim"),
    )
    answers = [
        (f"{number} ", clean_line(option.label, limit=80) + (" …" if option.text else ""))
        for number, option in enumerate(asked.options[:9], 1)
    ]
    if asked.free:
        answers.append(("0 ", "write an answer"))
    below = tuple(_packed(answers, width))
    room = max(1, height - 1 - len(below))
    question = wrap((Piece(clean_line(asked.question, limit=8_000)),), width, most=room)
    texts = [clean_line(line, limit=8_000) for line in asked.context.splitlines()]
    context = [row for text in texts if text for row in wrap((Piece(text, "dim"),), width, most=20)][:20]
    return (*wrap(head, width), *question, *below, *context)


def _packed(answers: Sequence[tuple[str, str]], width: int) -> Iterator[Pieces]:
    """Answers beside each other, none of them broken between two lines where it fits on one."""
    line: list[Piece] = []
    used = 0
    for number, label in answers:
        size = cell_len(number + label)
        if line and used + 3 + size > width:
            yield tuple(line)
            line, used = [], 0
        gap = [Piece("   ")] if line else []
        line += [*gap, Piece(number, "accent"), Piece(label)]
        used += 3 * len(gap) + size
    if line:
        yield tuple(line)
