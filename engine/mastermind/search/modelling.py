"""Changes that a model proposes: whole files, in a structured answer, for a component's files and no others.

What the files hold was written by others, so it stands between fences. What a model says is a candidate like
any other: it is judged before it is believed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from engine.domain.fence import RULE
from engine.domain.improvement import Component, ComponentKind, Finding, Proposal
from engine.domain.text import clean_line
from engine.library.prompt_parts import PartError, checked
from engine.models import ModelClient, ModelError, PieceSink, Recorder, fence
from engine.models.answer import ModelAnswer
from engine.models.blocks import Text, said
from engine.models.cost import Cost, cost_of, dearest
from engine.models.errors import ModelErrorKind
from engine.models.port import unrecorded, unwatched
from engine.models.request import ModelRequest
from engine.models.structured import ask_for

MOST_CHANGES = 3
MAX_TOKENS = 16_000
"""Longest answer; whole files are long."""
FILE_LIMIT = 60_000
"""Characters of one file that are shown; one that is longer is left out, as its whole text is answered."""
MATERIAL = 160_000
"""Characters of all files together."""
FINDINGS = 20

SYSTEM = f"""You improve one component of a system in which an operator steers agents. You are shown its
files, what an audit found, and how a candidate is measured. Propose changes that mend the findings or make
the measure better; each is tried by itself against what is there now, on tasks that you do not see. A change
that breaks what holds, that knows answers by heart, or that touches other than the listed files is rejected.

Give for each changed file its whole new text. Propose nothing where you see nothing to make better: an empty
list is a good answer.

{RULE}"""


class FileText(BaseModel):
    """The whole new text of one file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    path: Annotated[str, Field(min_length=1, max_length=500)]
    text: Annotated[str, Field(max_length=400_000)]


class OneChange(BaseModel):
    """One change, complete in itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: Annotated[str, Field(min_length=1, max_length=200)]
    why: Annotated[str, Field(max_length=2_000)]
    files: Annotated[tuple[FileText, ...], Field(min_length=1, max_length=20)]


class Changes(BaseModel):
    """Changes of the component, the most promising first; none where nothing can be made better."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    changes: Annotated[tuple[OneChange, ...], Field(max_length=MOST_CHANGES)]


class ModelUnavailable(Exception):  # noqa: N818 - it is an answer, and no fault
    """A model could not be asked, or gave nothing that can be used; the message says why."""

    def __init__(self, message: str, cost_usd: float = 0.0) -> None:
        super().__init__(message)
        self.cost_usd = cost_usd


@dataclass(frozen=True, slots=True)
class Proposed:
    """What came of asking a model."""

    proposals: tuple[Proposal, ...]
    """Whatever was paid stands in the first one."""
    cost_usd: float
    """Of all calls, repairs included."""


async def model_proposals(
    client: ModelClient,
    model: str,
    component: Component,
    texts: Mapping[str, str],
    findings: Sequence[Finding],
    *,
    budget_usd: float,
    beside: Mapping[str, str] | None = None,
    directive: str = "",
    record: Recorder = unrecorded,
) -> Proposed:
    """What a model proposes for a component.

    Args:
        client: who carries the question.
        model: its name.
        component: what is to be improved.
        texts: its files as they are, by path from the workspace's directory.
        findings: what an audit found.
        budget_usd: what all calls may cost together, repairs included; infinity for no limit.
        beside: further files to know about, such as tests; they are not to be changed.
        directive: what the operator asked for, in words.
        record: told of every call.

    Raises:
        ModelUnavailable: it cannot be asked within the budget, the call failed, or no answer could be used.
    """
    request = _request(client, model, component, texts, findings, beside or {}, directive)
    within = _Within(client, budget_usd)

    def check(given: Changes) -> list[str]:
        return _faults(given, component, texts)

    try:
        answer = await ask_for(within, request, Changes, name="propose_changes", check=check, record=record)
    except ModelError as error:
        raise ModelUnavailable(f"{model}: {error.message}", float(within.cost.usd)) from error
    answers = tuple(one for one in findings if one.target == component.id)
    made = [_proposal(one, model, answers) for one in answer.value.changes]
    cost = float(within.cost.usd)
    if made:
        refused = "; ".join(one for problems in answer.problems for one in problems)
        why = f"{made[0].why} (an answer before was refused: {refused})" if refused else made[0].why
        made[0] = replace(made[0], cost_usd=cost, why=clean_line(why, limit=2_000))
    return Proposed(tuple(made), cost)


class _Within:
    """A client that makes no call which could cost more than what is left."""

    def __init__(self, client: ModelClient, budget_usd: float) -> None:
        self._client = client
        self._budget = budget_usd
        self.cost = Cost()
        self.capabilities = client.capabilities
        self.count_tokens = client.count_tokens

    async def send(
        self,
        request: ModelRequest,
        *,
        sink: PieceSink = unwatched,
        record: Recorder = unrecorded,
        cut: asyncio.Event | None = None,
    ) -> ModelAnswer:
        """See `ModelClient`.

        Raises:
            ModelError: of kind BUDGET where the call could break the budget.
        """
        if not math.isinf(self._budget):
            self._check(request)

        def note(asked: ModelRequest, outcome: ModelAnswer | ModelError) -> None:
            record(asked, outcome)
            answer = outcome if isinstance(outcome, ModelAnswer) else outcome.answer
            if answer is not None:
                self.cost += cost_of(answer.usage, self.capabilities(asked.model))

        return await self._client.send(request, sink=sink, record=note, cut=cut)

    def _check(self, request: ModelRequest) -> None:
        most = dearest(request, self.capabilities(request.model))
        if most.unpriced:
            why = "its price is not known, so it cannot be kept within a budget"
            raise ModelError(ModelErrorKind.BUDGET, why)
        left = self._budget - float(self.cost.usd)
        if float(most.usd) > left:
            why = f"a call may cost ${most.usd:.4f}, and ${left:.4f} is left of the budget"
            raise ModelError(ModelErrorKind.BUDGET, why)


def _request(
    client: ModelClient,
    model: str,
    component: Component,
    texts: Mapping[str, str],
    findings: Sequence[Finding],
    beside: Mapping[str, str],
    directive: str,
) -> ModelRequest:
    named = {one.path for one in findings}
    order = sorted(texts, key=lambda path: (path not in named, path))
    parts = [
        f"Component: {clean_line(component.title, limit=200)}",
        f"Measured by: {clean_line(component.measure, limit=300)}",
    ]
    if directive:
        parts.append(f"The operator asks: {clean_line(directive, limit=2_000)}")
    listed = "\n".join(
        f"- {one.concern}: {one.text} ({', '.join(one.evidence[:3])})" for one in findings[:FINDINGS]
    )
    parts.append(fence("what the audit found", listed or "nothing stands out"))
    room = MATERIAL
    for name, those in (("", {path: texts[path] for path in order}), ("not to be changed: ", beside)):
        for path, text in those.items():
            if len(text) > min(FILE_LIMIT, room):
                parts.append(f"The file {clean_line(path)} is too long to be shown; leave it as it is.")
                continue
            room -= len(text)
            parts.append(fence(f"{name}{path}", text or "(empty)", limit=FILE_LIMIT))
    allowed = "\n".join(f"- {clean_line(path, limit=300)}" for path in component.paths)
    parts.append(f"Files that a change may have:\n{allowed}")
    most = client.capabilities(model).max_output
    question = said("\n\n".join(parts), name="question")
    return ModelRequest(
        model, (question,), (Text(SYSTEM, "system", cache=True),), max_tokens=min(MAX_TOKENS, most)
    )


def _faults(answer: Changes, component: Component, texts: Mapping[str, str]) -> list[str]:
    found = []
    for number, change in enumerate(answer.changes, start=1):
        paths = [one.path for one in change.files]
        if len(set(paths)) < len(paths):
            found.append(f"change {number} gives a file twice")
        found += [
            f"change {number}: '{clean_line(path, limit=200)}' is none of the files that a change may have"
            for path in paths
            if path not in component.paths
        ]
        if all(texts.get(one.path) == one.text for one in change.files):
            found.append(f"change {number} leaves every file as it is")
        if component.kind is ComponentKind.PROMPT:
            found += [f"change {number}: {wrong}" for one in change.files if (wrong := _unfit(one))]
    return found


def _unfit(file: FileText) -> str:
    """Why a file cannot be a part of a prompt; empty where it can."""
    try:
        checked(PurePosixPath(file.path).stem, file.text)
    except PartError as error:
        return str(error)
    return ""


def _proposal(change: OneChange, model: str, answers: tuple[Finding, ...]) -> Proposal:
    return Proposal(
        clean_line(change.title, limit=200),
        f"model:{model}",
        {one.path: one.text for one in change.files},
        why=clean_line(change.why, limit=2_000),
        answers=answers,
    )
