"""A model that helps a search of memory: other ways to put the query, and an order of what was found.

Query and memories are material; the answers are words to look for and ids, so that nothing in a memory can do
more than change its place.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, Field

from engine.core.text import RULE, clean_line, fence
from engine.memory.rewriting import RewriteError
from engine.models.completion import ModelClient, Recorder, ignore_call
from engine.models.cost import cost_of
from engine.models.errors import ModelError
from engine.models.messages import ModelAnswer, Text, user_message
from engine.models.request import ModelRequest
from engine.models.structured import ask_for

MAX_TOKENS = 200
"""Longest answer."""
KEPT = 50
"""Answers that are not asked for again."""
ROLE = """You help to search the notes of an agent. You never act and never answer the question itself."""
REWRITE = """Give up to three other short ways to put this query, in words that a note which answers it would
use: synonyms, names, the words of the answer. No sentences, no explanations, as in
{"queries": ["restart database", "postgres systemctl"]}."""
ORDER = """Which of these notes answer the query? Give the ids of those that do, the best first, as
{"ids": [...]}."""


class _Queries(BaseModel, extra="forbid"):
    """Other ways to put the query."""

    queries: list[str] = Field(max_length=10)


class _Order(BaseModel, extra="forbid"):
    """Ids of notes, what answers the query best first."""

    ids: list[str] = Field(min_length=1, max_length=50)


Form = TypeVar("Form", bound=BaseModel)


class ModelRewriter:
    """Asks a model; see `engine.memory.rewriting.Rewriter`. What it answered once is not asked again.

    Args:
        client: carries the questions, within a budget.
        model: its name.
        record: gets every call.
    """

    def __init__(self, client: ModelClient, model: str, record: Recorder = ignore_call) -> None:
        self._client, self.name, self._record = client, model, record
        self._known: OrderedDict[str, BaseModel] = OrderedDict()

    async def others(self, query: str) -> tuple[tuple[str, ...], int]:
        """See `Rewriter`."""
        given, tokens = await self._ask("give_queries", REWRITE, fence("the query", query), _Queries)
        return tuple(given.queries), tokens

    async def order(self, query: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
        """See `Rewriter`."""
        lines = "\n".join(
            json.dumps({"id": one, "text": text}, ensure_ascii=False) for one, text in texts.items()
        )
        shown = f"{fence('the query', query)}\n{fence('notes', lines, limit=len(lines) + 1)}"
        given, tokens = await self._ask("give_order", ORDER, shown, _Order)
        return tuple(given.ids), tokens

    async def _ask(self, name: str, question: str, material: str, form: type[Form]) -> tuple[Form, int]:
        most = min(MAX_TOKENS, self._client.capabilities(self.name).max_output)
        request = ModelRequest(
            self.name,
            (user_message(f"{material}\n\n{question}", name="question"),),
            (Text(f"{ROLE}\n\n{RULE}", "role", cache=True),),
            max_tokens=most,
            temperature=0.0,
        )
        tokens = 0

        def called(asked: ModelRequest, outcome: ModelAnswer | ModelError) -> None:
            nonlocal tokens
            answer = outcome.answer if isinstance(outcome, ModelError) else outcome
            if answer is not None:
                tokens += cost_of(answer.usage, self._client.capabilities(asked.model)).tokens
            self._record(asked, outcome)

        known = self._known.get(request.digest)
        if isinstance(known, form):
            return known, 0
        try:
            given = await ask_for(self._client, request, form, name=name, record=called, repairs=0)
        except ModelError as error:
            raise RewriteError(clean_line(error.message, limit=500)) from error
        self._known[request.digest] = given.value
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return given.value, tokens
