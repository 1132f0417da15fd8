"""Changes that a model proposes: whole files, in a structured answer, for a component's files and no others.

What the files hold was written by others, so it stands between fences. What a model says is a candidate like
any other: it is judged before it is believed.
"""

from __future__ import annotations

import asyncio
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, Field

from engine.core.improvement import Component, ComponentKind, Finding, Proposal
from engine.core.text import RULE, clean_line, fence
from engine.improve.ports import NothingProposed, ProposalRequest, Variant
from engine.improve.search.archive import archive
from engine.improve.search.components import current_texts
from engine.models.completion import ModelClient, PieceSink, Recorder, ignore_call, ignore_piece
from engine.models.cost import Cost, cost_of, maximum_cost
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer, Text, user_message
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
_DIFFERENCE = 4_000
"""Characters of the difference of what was tried before."""

SYSTEM = f"""You improve one component of a system in which an operator steers agents. You are shown its
files, what an audit found, and how a candidate is measured. Propose changes that mend the findings or make
the measure better; each is tried by itself against what is there now, on tasks that you do not see. A change
that breaks what holds, that knows answers by heart, or that touches other than the listed files is rejected.

Give for each changed file its whole new text. Propose nothing where you see nothing to make better: an empty
list is a good answer. Where it is said what was tried before and what the judge said of it, do not give the
same again: mend what the judge names, or try another way.

{RULE}"""


class FileText(BaseModel, extra="forbid", frozen=True):
    """The whole new text of one file."""

    path: Annotated[str, Field(min_length=1, max_length=500)]
    text: Annotated[str, Field(max_length=400_000)]


class ProposedChange(BaseModel, extra="forbid", frozen=True):
    """One change, complete in itself."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    why: Annotated[str, Field(max_length=2_000)]
    files: Annotated[tuple[FileText, ...], Field(min_length=1, max_length=20)]


class ProposedChanges(BaseModel, extra="forbid", frozen=True):
    """Changes of the component, the most promising first; none where nothing can be made better."""

    changes: Annotated[tuple[ProposedChange, ...], Field(max_length=MOST_CHANGES)]


MOST_BESIDE = 40
"""Files that a model is shown beside those that it may change."""


class ModelProposer:
    """Asks the model that thinks, about components of every kind.

    Args:
        client: carries the question.
        model: its name.
    """

    name, asks = "model", 3

    def __init__(self, client: ModelClient, model: str) -> None:
        self._client, self._model = client, model

    def proposes(self, component: Component) -> bool:
        """Whatever has files can be shown to a model."""
        return bool(component.paths)

    async def propose(self, asked: ProposalRequest) -> Iterable[Proposal]:
        """The model's proposals, of which the first has all costs, repairs included; none without a budget.

        Raises:
            NothingProposed: it sees nothing to make better, cannot be asked within the budget, the call
                failed, or no answer could be used.
        """
        component, findings = asked.component, asked.findings
        if asked.budget_usd <= 0 and asked.budget_tokens <= 0:
            return ()
        try:
            texts, beside = await asyncio.to_thread(_texts, asked.tree, component)
        except (OSError, ValueError) as error:
            raise NothingProposed(f"{component.id} cannot be read: {error}") from None
        model = self._model
        question = _question(component, texts, findings, beside, archive(asked.tried, texts))
        most = min(MAX_TOKENS, self._client.capabilities(model).max_output)
        request = ModelRequest(
            model,
            (user_message(question, name="question"),),
            (Text(SYSTEM, "system", cache=True),),
            max_tokens=most,
        )
        within = _Within(self._client, asked.budget_usd, asked.budget_tokens)
        check = partial(_faults, component, texts)
        try:
            answer = await ask_for(within, request, ProposedChanges, name="propose_changes", check=check)
        except ModelError as error:
            spent = float(within.cost.usd), within.cost.tokens
            raise NothingProposed(f"{model}: {error.message}", *spent) from error
        answers = tuple(finding for finding in findings if finding.target == component.id)
        made = [
            Proposal(
                clean_line(change.title, limit=200),
                f"model:{model}",
                {file.path: file.text for file in change.files},
                why=clean_line(change.why, limit=2_000),
                answers=answers,
            )
            for change in answer.value.changes
        ]
        cost = float(within.cost.usd)
        if not made:
            raise NothingProposed("it sees nothing to make better", cost, within.cost.tokens)
        refused = "; ".join(problem for problems in answer.problems for problem in problems)
        why = f"{made[0].why} (an answer before was refused: {refused})" if refused else made[0].why
        tokens, why = within.cost.tokens, clean_line(why, limit=2_000)
        made[0] = replace(made[0], cost_usd=cost, tokens=tokens, why=why)
        return tuple(made)


def _texts(tree: Path, component: Component) -> tuple[dict[str, str], Mapping[str, str]]:
    """A component's files that are there, and the tests beside them."""
    texts = {path: text for path in component.paths if (text := _text(tree / path)) is not None}
    if component.kind is ComponentKind.PLANS:  # the shipped plans hold where there is no file
        texts = current_texts(component, tree) | texts
    directories = {"/".join(PurePosixPath(path).parts[:2]) for path in component.paths if path.count("/") > 1}
    beside: dict[str, str] = {}
    for directory in sorted(directories):
        for file in sorted((tree / directory).rglob("*test*.py"))[:MOST_BESIDE]:
            path = file.relative_to(tree).as_posix()
            if path not in texts and not file.is_symlink() and (text := _text(file)) is not None:
                beside[path] = text
    return texts, beside


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(4 * FILE_LIMIT).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


class _Within:
    """A client that makes no call which could cost more than what is left."""

    def __init__(self, client: ModelClient, budget_usd: float, tokens: int) -> None:
        self._client = client
        self._budget, self._tokens = budget_usd, tokens
        self.cost = Cost()
        self.capabilities = client.capabilities

    async def send(
        self, request: ModelRequest, *, sink: PieceSink = ignore_piece, record: Recorder = ignore_call
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

        return await self._client.send(request, sink=sink, record=note)

    def _check(self, request: ModelRequest) -> None:
        most = maximum_cost(request, self.capabilities(request.model))
        if most.unpriced or not self._budget:
            tokens = self._tokens - self.cost.tokens
            if most.tokens <= tokens:
                return
            why = f"a call may take {most.tokens:,} tokens, and {tokens:,} are left of the budget"
            if not self._tokens:
                why = "its price is not known, so no dollars can hold it; give it --tokens"
            raise ModelError(ModelErrorKind.BUDGET, why)
        left = self._budget - float(self.cost.usd)
        if float(most.usd) > left:
            why = f"a call may cost ${most.usd:.4f}, and ${left:.4f} is left of the budget"
            raise ModelError(ModelErrorKind.BUDGET, why)


def _question(
    component: Component,
    texts: Mapping[str, str],
    findings: Sequence[Finding],
    beside: Mapping[str, str],
    tried: Sequence[Variant],
) -> str:
    named = {finding.path for finding in findings}
    order = sorted(texts, key=lambda path: (path not in named, path))
    parts = [
        f"Component: {clean_line(component.title, limit=200)}",
        f"Measured by: {clean_line(component.measure, limit=300)}",
    ]
    listed = "\n".join(
        f"- {finding.concern}: {finding.text} ({', '.join(finding.evidence[:3])})"
        for finding in findings[:FINDINGS]
    )
    parts.append(fence("what the audit found", listed or "nothing stands out"))
    parts += [fence(f"tried before: {variant.candidate.id}", _judged(variant, texts)) for variant in tried]
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
    return "\n\n".join(parts)


def _judged(variant: Variant, base: Mapping[str, str]) -> str:
    """What was changed, and what the judge said of it."""
    candidate, said = variant.candidate, variant.candidate.verdict
    assert said is not None
    changed = [
        line
        for path, text in variant.texts.items()
        for line in difflib.unified_diff(
            base.get(path, "").splitlines(), (text or "").splitlines(), path, path, lineterm="", n=1
        )
    ]
    words = "\n".join(changed)[:_DIFFERENCE]
    return f"{candidate.title}\nruling: {said.ruling}: {'; '.join(said.reasons)}\n{words}"


def _faults(component: Component, texts: Mapping[str, str], answer: ProposedChanges) -> list[str]:
    faults = []
    for number, change in enumerate(answer.changes, start=1):
        paths = [file.path for file in change.files]
        if len(set(paths)) < len(paths):
            faults.append(f"change {number} gives a file twice")
        faults += [
            f"change {number}: '{clean_line(path, limit=200)}' is none of the files that a change may have"
            for path in paths
            if path not in component.paths
        ]
        if all(texts.get(file.path) == file.text for file in change.files):
            faults.append(f"change {number} leaves every file as it is")
    return faults
