"""The layout of a model's answer: which lines make a plan, which name an invention.

The format asked for is fenced YAML, but models close no fence, forget separators, put prose between
plans and colons into strings, which a YAML library refuses. So the answer is read line
by line, in time linear in its length. A line inside a plan that cannot be placed is a fault of that
plan; nothing inside a plan is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from engine.value import dataclass, field

PLAN_LIMIT = 50
"""Plans that are read of one answer."""
INVENTION_LIMIT = 200
SECTION_LIMIT = 50
"""Conditions or operations of one plan."""
FAULT_LIMIT = 500
"""Faults outside of plans before the rest is left unread."""
PLAN_FAULT_LIMIT = 20
"""Faults that are kept of one plan; one is enough to refuse it."""
ITEM_LIMIT = 2_000
"""Characters of an event, condition or operation."""

EMPTY_WORDS = frozenset({"", "<none>", "none", "none.", "[]", "true", "null", "n/a"})
"""What models write where they mean that there is nothing."""


class Section(StrEnum):
    """The parts of a plan, by their keys."""

    EVENT = "EVENT"
    CONDITIONS = "CONDITIONS"
    OPERATIONS = "OPERATIONS"


class InventionKind(StrEnum):
    """What a model may invent (C3); actions it may not (C4)."""

    GOAL = "goal"
    BELIEF = "belief"


class ProblemKind(StrEnum):
    """What could not be read."""

    EMPTY = "empty"
    """Nothing at all in the answer."""
    PLAN = "plan"
    GOAL = "goal"
    BELIEF = "belief"
    TEXT = "text"
    """A line that belongs to nothing."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, where and why; lines count from 1."""

    kind: ProblemKind
    line: int
    reason: str


@dataclass(slots=True)
class Item:
    """One event, condition or operation as written, without list mark, comment and back-ticks."""

    line: int
    text: str
    indent: int
    dashed: bool = True


@dataclass(slots=True)
class PlanLayout:
    """The items of one plan; with a fault the plan must not be used."""

    line: int
    items: dict[Section, list[Item]] = field(default_factory=dict)
    faults: list[Problem] = field(default_factory=list)

    def add_fault(self, line: int, reason: str) -> None:
        """Note why the plan must not be used."""
        if len(self.faults) < PLAN_FAULT_LIMIT:
            self.faults.append(Problem(ProblemKind.PLAN, line, reason))


@dataclass(slots=True)
class InventionLayout:
    """An invented goal or belief and what the model says it means."""

    kind: InventionKind
    line: int
    text: str
    purpose: str = ""


@dataclass(slots=True)
class AnswerLayout:
    """All plans and inventions of an answer, and the faults that belong to no plan."""

    plans: list[PlanLayout] = field(default_factory=list)
    inventions: list[InventionLayout] = field(default_factory=list)
    faults: list[Problem] = field(default_factory=list)


_KEYS: dict[str, Section | InventionKind] = {
    **{section.casefold(): section for section in Section},
    **{section.casefold().removesuffix("s"): section for section in Section},
    **{kind.value: kind for kind in InventionKind},
}
_PLAN_HEADER = re.compile(r"plans?[\s\d]*:?\Z", re.I)


def layout_of(text: str) -> AnswerLayout:
    """The plans and inventions of an answer as they are written; never raises."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.read(number, line)
        if reader.stopped:
            break
    return reader.answer


def is_empty(text: str) -> bool:
    """Whether the text says that there is nothing."""
    return text.strip("`\"' ").casefold() in EMPTY_WORDS


def outside_strings(text: str) -> Iterator[tuple[int, str]]:
    """Position and character of everything that is not inside double quotes."""
    quoted = False
    for position, sign in enumerate(text):
        if sign == '"':
            quoted = not quoted
        if not quoted:
            yield position, sign


def split_flow(text: str) -> list[str]:
    """The members of a YAML flow list `[a(X, Y), b]`; any other text is its only member."""
    if not (text.startswith("[") and text.endswith("]")):
        return [text]
    inner, depth, start, members = text[1:-1], 0, 0, []
    for position, sign in outside_strings(inner):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            # `[execute] move([a])` only looks like a list.
            return [text]
        if sign == "," and depth == 0:
            members.append(inner[start:position])
            start = position + 1
    members.append(inner[start:])
    return [member.strip() for member in members if member.strip()]


def _uncommented(text: str) -> str:
    for position, sign in outside_strings(text):
        if sign == "#" and (position == 0 or text[position - 1].isspace()):
            return text[:position].rstrip()
    return text


def _unquoted(text: str) -> str:
    """The item without what encloses it: quotes around the whole, back-ticks, a trailing full stop."""
    text = text.strip().rstrip(",;.").strip("` ")
    for quote in ('"', "'"):
        if len(text) > 1 and text[0] == text[-1] == quote and quote not in text[1:-1]:
            text = text[1:-1].strip()
    return text if '"' in text else text.replace("`", "")


class _Reader:
    def __init__(self) -> None:
        self.answer = AnswerLayout()
        self.stopped = False
        self._plan: PlanLayout | None = None
        self._torn: PlanLayout | None = None
        self._section = Section.EVENT
        self._section_indent = 0
        self._invention: InventionLayout | None = None
        self._fenced = False
        self._after_blank = False

    def read(self, number: int, line: str) -> None:
        text = line.strip()
        blank_before, self._after_blank = self._after_blank, not text
        if not text:
            return
        if text.startswith(("```", "~~~")):
            # An opening fence has an info string; models also open the next without closing the last.
            self._fenced = bool(text.strip("`~ ")) or not self._fenced
            self._close()
        elif (len(text) >= 3 and set(text) <= set("-")) or text == "..." or _PLAN_HEADER.match(text[:40]):
            self._close()
        elif text.startswith("#"):
            if not self._fenced:
                self._close()
        else:
            self._content(number, line, blank_before)

    def _content(self, number: int, line: str, blank_before: bool) -> None:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        dashed = text == "-" or text.startswith(("- ", "* ", "• "))
        if dashed:
            text = text[1:].strip()
        head, colon, value = text.partition(":")
        word = head.strip("*`\"' ").casefold() if len(head) < 40 else ""
        key = _KEYS.get(word) if colon else None
        if isinstance(key, Section):
            self._open_section(number, key, _uncommented(value.strip(" *")), indent)
        elif key is not None:
            self._open_invention(number, key, value)
        elif colon and word == "purpose" and self._plan is None:
            self._purpose(number, value)
        elif self._plan is not None:
            self._item(self._plan, Item(number, _uncommented(text), indent, dashed), blank_before)
        elif self._invention is not None and self._invention.purpose and not dashed:
            self._invention.purpose = f"{self._invention.purpose} {text}"[:ITEM_LIMIT]
        elif self._torn is not None and dashed:
            self._torn.add_fault(number, f"'{text[:60]}' stands apart from the plan above it")
        elif self._fenced and not is_empty(_uncommented(text)) and not (colon and is_empty(value)):
            self._fault(number, "the line belongs to no plan and to no invention")

    def _open_section(self, number: int, key: Section, value: str, indent: int) -> None:
        if key is Section.EVENT:
            self._close()
            if len(self.answer.plans) == PLAN_LIMIT:
                self._stop(number, f"more than {PLAN_LIMIT} plans; the rest was not read")
                return
            self._plan = PlanLayout(number)
            self.answer.plans.append(self._plan)
        if self._plan is None:
            # They may be the guards of the plan before, so that one cannot be trusted either.
            reason = f"{key} without an EVENT before them"
            if self.answer.plans:
                self.answer.plans[-1].add_fault(number, reason)
            else:
                self._fault(number, reason)
            return
        if key in self._plan.items:
            self._plan.add_fault(number, f"a second {key} in the same plan")
        self._section, self._section_indent = key, indent
        items = self._plan.items.setdefault(key, [])
        for member in [value] if key is Section.EVENT else split_flow(value):
            if member:
                self._add(self._plan, items, Item(number, member, indent, dashed=False))

    def _item(self, plan: PlanLayout, item: Item, blank_before: bool) -> None:
        items = plan.items[self._section]
        last = items[-1] if items else None
        beside = last is not None and not last.dashed and item.indent == last.indent > self._section_indent
        if item.dashed or last is None or beside:
            if self._fenced or item.dashed or not blank_before:
                self._add(plan, items, item)
                return
        elif item.indent > last.indent and not blank_before:
            items.pop()
            last.text = f"{last.text} {item.text}"
            self._add(plan, items, last)
            return
        if not self._fenced and blank_before:
            self._close()
            self._torn = plan
        else:
            plan.add_fault(item.line, f"'{item.text[:60]}' is no part of a plan")

    def _add(self, plan: PlanLayout, items: list[Item], item: Item) -> None:
        item.text = _unquoted(item.text)
        if len(item.text) > ITEM_LIMIT:
            plan.add_fault(item.line, f"longer than {ITEM_LIMIT} characters")
        elif len(items) == SECTION_LIMIT:
            plan.add_fault(item.line, f"more than {SECTION_LIMIT} {self._section.lower()}")
        else:
            items.append(item)

    def _open_invention(self, number: int, kind: InventionKind, value: str) -> None:
        self._close()
        text = _unquoted(_uncommented(value))
        if is_empty(text):
            return
        if len(self.answer.inventions) == INVENTION_LIMIT:
            self._stop(number, f"more than {INVENTION_LIMIT} inventions; the rest was not read")
            return
        self._invention = InventionLayout(kind, number, text)
        self.answer.inventions.append(self._invention)

    def _purpose(self, number: int, value: str) -> None:
        if self._invention is None:
            self._fault(number, "a purpose without a goal or belief before it")
        else:
            self._invention.purpose = value.strip().strip("\"'")[:ITEM_LIMIT]

    def _fault(self, number: int, reason: str) -> None:
        if len(self.answer.faults) < FAULT_LIMIT:
            self.answer.faults.append(Problem(ProblemKind.TEXT, number, reason))
        else:
            self._stop(number, f"more than {FAULT_LIMIT} faults; the rest was not read")

    def _stop(self, number: int, reason: str) -> None:
        self._close()
        self.stopped = True
        self.answer.faults.append(Problem(ProblemKind.TEXT, number, reason))

    def _close(self) -> None:
        self._plan = self._torn = self._invention = None
