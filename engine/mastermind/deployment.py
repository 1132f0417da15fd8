"""A directive such as `create 2 agents that run the tests, run them, delete them`, read as steps.

Pure: nothing is created here. What does not parse is named, never guessed at. Source: mindX spec §1.2,
`deploy`, and §5.4 (the original's planner was never told that such actions exist).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from engine.domain.commands import check_agent_id
from engine.domain.text import clean_line
from engine.library.words import words_of

AGENTS_LIMIT = 16
"""Agents of one deployment."""
DIRECTIVE_LIMIT = 8_000
"""Characters of a directive."""
USAGE = "deploy create N agents that …, run them, delete them"


class DeployError(ValueError):
    """The directive is not carried out; the message says what was not understood, in one line."""


class Act(StrEnum):
    """What a step does."""

    CREATE = "create"
    RUN = "run"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Group:
    """Agents that are alike."""

    count: int
    sentence: str
    """What each is, as behind `agent_create TYPE ID`."""
    kind: str = "bdi_agent"
    stem: str = "worker"
    """Their ids are this and a number; just this where it is one agent that was named."""
    named: bool = False


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a directive asks for."""

    directive: str
    groups: tuple[Group, ...]
    run: bool = False
    delete: bool = False
    origin: str = "as it was typed"
    """Who read it: as it was typed, or a model's name."""

    @property
    def count(self) -> int:
        """How many agents there will be."""
        return sum(group.count for group in self.groups)

    def as_json(self) -> dict[str, Any]:
        """The deployment as plain values, from which `from_json` makes it again."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Deployment:
        """The deployment of such values.

        Raises:
            DeployError: they are none.
        """
        try:
            groups = tuple(Group(**group) for group in value["groups"])
            return checked(cls(**{**value, "groups": groups}))
        except (KeyError, TypeError):
            raise DeployError("what was approved cannot be read; look at the steps again") from None

    def ids(self, taken: Collection[str]) -> tuple[tuple[str, Group], ...]:
        """An id for each agent that nobody bears or bore."""
        found: list[tuple[str, Group]] = []
        used = set(taken)
        for group in self.groups:
            if group.named and group.count == 1:
                found.append((group.stem, group))
                used.add(group.stem)
                continue
            number = 0
            for _ in range(group.count):
                number += 1
                while f"{group.stem}-{number}" in used:
                    number += 1
                used.add(f"{group.stem}-{number}")
                found.append((f"{group.stem}-{number}", group))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class DeployStep:
    """One step of a deployment, as it is shown before it is done."""

    number: int
    act: Act
    agent: str
    lines: tuple[str, ...]
    """What it does, for a person."""

    @property
    def line(self) -> str:
        """The step on one line."""
        return f"{self.number}. {self.act} {self.agent}: {'; '.join(self.lines)}"


def digest_of(steps: Sequence[DeployStep]) -> str:
    """What says that exactly these steps were seen, 16 hexadecimal digits."""
    return hashlib.sha256("\n".join(step.line for step in steps).encode()).hexdigest()[:16]


_NUMBERS = dict(
    zip(
        ("a", "an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
        (1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
        strict=True,
    )
)
_VERBS = r"(?:create|make|deploy|run|start|use|delete|remove)"
_THEM = r"(?:them|it|all|these|those|the\s+agents?)(?:\s+all)?"
_JOINT = re.compile(
    rf"(?:[,;.]\s*(?:and\s+|then\s+)*|\b(?:and|then)\s+(?:then\s+)?)(?={_VERBS}\s+(?:{_THEM}\b|"
    rf"(?:\d+|{'|'.join(_NUMBERS)})\s+(?:[\w-]+\s+){{0,2}}agents?\b))",
    re.I,
)
_CREATE = re.compile(
    rf"(?:create|make|deploy|use)\s+(?P<count>\d+|{'|'.join(_NUMBERS)})\s+(?P<type>[\w-]+\s+)??agents?"
    r"(?:\s+(?:named|called)\s+(?P<name>[\w-]+))?,?\s*(?P<what>.*)\Z",
    re.I | re.S,
)
_RUN = re.compile(
    rf"(?:run|start|use)\s+{_THEM}(?:\s+(?:to\s+the\s+end|until\s+(?:they\s+are|it\s+is)\s+done))?\Z", re.I
)
_DELETE = re.compile(
    rf"(?:delete|remove)\s+{_THEM}(?:\s+(?:after(?:wards)?|when|once)(?:\s+(?:they\s+are|it\s+is)\s+done)?)?\Z",
    re.I,
)


def parse_deployment(directive: str) -> Deployment:
    """What a directive asks for, read by its words alone.

    Raises:
        DeployError: a clause of it is none that is known; the message names it.
    """
    text = directive.strip().rstrip(".")
    if not text:
        raise DeployError(f"a directive is missing · usage: {USAGE}")
    if len(text) > DIRECTIVE_LIMIT:
        raise DeployError(f"the directive has {len(text):,} characters; at most {DIRECTIVE_LIMIT:,} are read")
    groups: list[Group] = []
    run = delete = False
    for clause in _clauses(text):
        if match := _CREATE.fullmatch(clause):
            if run or delete:
                raise DeployError("agents are created first, then run, then deleted; write it in this order")
            groups.append(_group(match))
        elif _RUN.fullmatch(clause) and groups and not delete:
            run = True
        elif _DELETE.fullmatch(clause) and groups:
            delete = True
        else:
            said = clean_line(clause, limit=80)
            raise DeployError(f"“{said}” is no step of a deployment here · write it as: {USAGE}")
    return checked(Deployment(directive, tuple(groups), run, delete))


def checked(said: Deployment) -> Deployment:
    """The deployment, if it creates a number of agents that can be watched.

    Raises:
        DeployError: it creates none, or too many.
    """
    if not 0 < said.count <= AGENTS_LIMIT:
        raise DeployError(f"{said.count} agents: a deployment creates 1 to {AGENTS_LIMIT}")
    return said


def _clauses(text: str) -> list[str]:
    masked = text
    for word in words_of(text):
        if word.quoted:
            masked = f"{masked[: word.start]}{'x' * (word.end - word.start)}{masked[word.end :]}"
    cuts = [(match.start(), match.end()) for match in _JOINT.finditer(masked)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    found = [text[start:end].strip(" ,;") for start, end in zip(starts, ends, strict=True)]
    return [clause for clause in found if clause]


def _group(match: re.Match[str]) -> Group:
    word = match["count"].lower()
    count = _NUMBERS[word] if word in _NUMBERS else int(word[:6])
    name = match["name"] or ""
    if name:
        try:
            check_agent_id(name)
        except ValueError as error:
            raise DeployError(clean_line(str(error))) from None
    kind = (match["type"] or "bdi_agent").strip()
    what = match["what"].strip()
    sentence = f"an agent {what}" if what else ""
    return Group(count, sentence, kind, name or "worker", bool(name))
