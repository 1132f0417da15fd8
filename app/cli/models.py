"""`pilothouse models`: the models there are, what is known of each and from where, and trying one."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from app.cli.options import Answer, run_answer, workspace_of
from app.commands.settings import load_and_say
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.models.choice import DEFAULT_MODEL, NO_MODEL, ModelChoice
from engine.models.client import MessagesClient
from engine.models.completion import ignore_piece
from engine.models.endpoint import AUTO
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import ModelAnswer, Piece, user_message
from engine.models.model_table import Capabilities
from engine.models.request import ModelRequest, ToolSpec
from engine.value import asdict, dataclass

FACTS = {
    "context": "context_window",
    "output": "max_output",
    "tools": "tools",
    "json_schema": "json_schema",
    "price_in": "prices",
    "profile": "profile",
}
"""Fields of a row in `models.toml`, and of what is known of a model."""
TESTED_CONTEXT = 300_000
"""The longest context in tokens that is tried: a longer one would be a long upload."""
CANCELLED_S = 0.5
ANSWER_TOKENS = 300
_CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "country": {"type": "string"}},
    "required": ["city", "country"],
    "additionalProperties": False,
}


def run(options: argparse.Namespace) -> int:
    """List models, or try one."""
    return run_answer(options, _answer(options))


async def _answer(options: argparse.Namespace) -> Answer:
    settings = await asyncio.to_thread(load_and_say, workspace_of(options))
    choice = settings.model
    if choice is None:
        return 2, {"ok": False}, NO_MODEL
    client = choice.client()
    try:
        if options.what == "test":
            return await test_model(client, choice, options)
        return await list_models(client, choice)
    finally:
        await client.close()


# ------------------------------------------------------------------ the list


async def list_models(client: MessagesClient, choice: ModelChoice) -> Answer:
    """Every model that the settings, the tables or the endpoint name."""
    await client.learn(choice.name)
    named = [choice.name, *choice.roles.values(), *choice.fallback, *choice.tiers.values()]
    named += client.learned.models
    if choice.table is not None:
        named += [row.name for _, row in choice.table.rows if not set("*?") & set(row.name)]
    if choice.endpoint.anthropic:
        named.append(DEFAULT_MODEL)
    rows = [_row(client, choice, name) for name in dict.fromkeys(map(client.named, named))]
    server = client.learned.server or "the server"
    head = f"{choice.endpoint.host}: {server}, {client.learned.api or choice.endpoint.api or 'messages'} API"
    refused = [f"left out for {name}: {', '.join(parts)}" for name, parts in client.learned.refused.items()]
    width = max(len(row["name"]) for row in rows)
    lines = [
        f"  {'MODEL':{width}}  {'CONTEXT':>9} {'ANSWER':>7}  TOOLS  SCHEMA  {'PRICE':13}  PROFILE   FROM"
    ]
    lines += [_line(row, width) for row in rows]
    answer = {"ok": True, "endpoint": choice.endpoint.host, "server": server, "models": rows}
    return 0, {**answer, "refused": client.learned.refused}, "\n".join([head, *lines, *refused])


def _row(client: MessagesClient, choice: ModelChoice, name: str) -> dict[str, Any]:
    known, price = client.capabilities(name), client.capabilities(name).price(0)
    row = {field: getattr(known, fact) for field, fact in FACTS.items() if field != "price_in"}
    prices = [float(price.input), float(price.output)] if price is not None else None
    roles = [role for role, model in choice.roles.items() if model == name]
    thinks = ["thinks"] if name == client.named(choice.name) else []
    return {
        "name": name,
        **row,
        "price": prices,
        "roles": [*thinks, *roles],
        "from": _origin(client, choice, known),
    }


def _origin(client: MessagesClient, choice: ModelChoice, known: Capabilities) -> dict[str, str]:
    """From where each fact is."""
    own = choice.table.row(known.model) if choice.table is not None else None
    served = client.learned.models.get(known.model)
    built_in = known.known and not (own and not _in_program(known.model))
    origin = {}
    for field in FACTS:
        if field in client.learned.refused.get(known.model, ()):
            origin[field] = "trial"
        elif own is not None and getattr(own[1], field) is not None:
            origin[field] = own[0]
        elif built_in:
            origin[field] = "built in"
        elif served is not None and getattr(served, field) is not None:
            origin[field] = client.learned.server or "server"
        else:
            origin[field] = (
                "context" if field == "profile" else "unknown" if field == "price_in" else "assumed"
            )
    return origin


def _in_program(model: str) -> bool:
    from engine.models.model_table import capabilities_of

    return capabilities_of(model).known


def _line(row: dict[str, Any], width: int) -> str:
    price = f"${row['price'][0]:g} / ${row['price'][1]:g}" if row["price"] else "unknown"
    groups: dict[str, list[str]] = {}
    for field, place in row["from"].items():
        if (field, place) not in (("profile", "context"), ("price_in", "unknown")):
            groups.setdefault(place, []).append(field.removesuffix("_in"))
    origin = "; ".join(f"{place} ({', '.join(names)})" for place, names in groups.items())
    mark = "▸" if "thinks" in row["roles"] else " "
    return (
        f"{mark} {row['name']:{width}}  {row['context']:>9,} {row['output']:>7,}  "
        f"{'yes' if row['tools'] else 'no':5}  {'yes' if row['json_schema'] else 'no':6}  "
        f"{price:13}  {row['profile']:8}  {origin}"
    )


# ------------------------------------------------------------------ trying one


@dataclass(frozen=True, slots=True)
class Part:
    """What came of one part of the test."""

    ok: bool | None
    """None where it was not tried."""
    said: str
    seconds: float = 0.0


class ModelTest:
    """Tries one model, part by part.

    Args:
        client: asks it.
        name: the model.
        timeout_s: for each part.
        costly: whether a prompt as long as the context may be sent although it costs money.
    """

    def __init__(self, client: MessagesClient, name: str, timeout_s: float, *, costly: bool) -> None:
        self._client, self._name, self._timeout_s, self._costly = client, name, timeout_s, costly
        self._usage: list[ModelAnswer] = []

    @property
    def parts(self) -> dict[str, Callable[[], Awaitable[Part]]]:
        """What is tried, by name."""
        return {
            "streaming": self._streaming,
            "tools": self._tools,
            "schema": self._schema,
            "cancel": self._cancel,
            "usage": self._usage_part,
            "context": self._context,
        }

    async def run(self, part: Callable[[], Awaitable[Part]]) -> Part:
        """The result of a part; what fails says why."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                result = await part()
        except ModelError as error:
            result = Part(False, error.message)
        except TimeoutError:
            result = Part(False, f"not done within {self._timeout_s:g} s: --timeout gives it longer")
        return Part(result.ok, result.said, round(time.monotonic() - began, 1))

    async def _ask(self, text: str, sink: Callable[[Piece], None] = ignore_piece, **more: Any) -> ModelAnswer:
        request = ModelRequest(self._name, (user_message(text),), **{"max_tokens": ANSWER_TOKENS, **more})
        answer = await self._client.send(request, sink=sink)
        self._usage.append(answer)
        return answer

    async def _streaming(self) -> Part:
        pieces: list[Piece] = []
        answer = await self._ask("Count from 1 to 20, with a comma after each number.", pieces.append)
        first = (answer.first_piece_ms or 0) / 1000
        said = f"{len(pieces)} pieces, the first after {first:.1f} s"
        return Part(len(pieces) > 1, said if len(pieces) > 1 else f"{said}: the answer came at once")

    async def _tools(self) -> Part:
        if not self._client.capabilities(self._name).tools:
            return Part(None, "it is not asked to call tools")
        tool = ToolSpec("look_up", "look up what is known of a city", _CITY)
        asked = "Look up the city Paris in France: call the tool look_up."
        answer = await self._ask(asked, tools=(tool,), tool_choice=tool.name, temperature=0.0, max_tokens=100)
        uses = answer.tool_uses
        if not uses:
            await self._client.refuse(self._name, "tools")
            return Part(None, "it answered in words; from now on it is asked in words, or by a schema")
        if uses[0].fault or set(uses[0].input) < {"city", "country"}:
            return Part(False, f"its call cannot be used: {uses[0].fault or json.dumps(uses[0].input)[:80]}")
        return Part(True, f"called {uses[0].name} with {json.dumps(uses[0].input, ensure_ascii=False)[:60]}")

    async def _schema(self) -> Part:
        if not self._client.capabilities(self._name).json_schema:
            return Part(None, "the server is not asked to hold answers to a schema")
        asked = "Name a city and its country, as JSON with the keys city and country."
        answer = await self._ask(asked, json_schema=_CITY, temperature=0.0, max_tokens=100)
        if not self._client.capabilities(self._name).json_schema:
            return Part(False, "the server refuses schemas; it is not asked again")
        try:
            value = read_json(answer.text)
        except StrictJsonError as error:
            return Part(False, f"no JSON: {error}")
        fits = isinstance(value, dict) and set(value) == {"city", "country"}
        return Part(fits, json.dumps(value, ensure_ascii=False)[:80])

    async def _cancel(self) -> Part:
        begun = asyncio.Event()
        asked = "Write a long story of a thousand words."
        call = asyncio.create_task(self._ask(asked, lambda _piece: begun.set(), max_tokens=1_000))
        waits = asyncio.create_task(begun.wait())
        try:
            await asyncio.wait((call, waits), return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                await call
                return Part(None, "the answer was over before it could be cut off")
        finally:
            waits.cancel()
            call.cancel()
            cut = time.monotonic()
            await asyncio.gather(call, waits, return_exceptions=True)
        took = time.monotonic() - cut
        after = time.monotonic()
        await self._ask("Say: ready", max_tokens=16)
        again = f"it answered again after {time.monotonic() - after:.1f} s"
        return Part(took < CANCELLED_S, f"cut off within {took * 1000:.0f} ms; {again}")

    async def _usage_part(self) -> Part:
        counted = [answer.usage for answer in self._usage if not answer.usage.estimated]
        if not counted:
            return Part(False, "the server does not count tokens; they are estimated")
        asked, said = (
            sum(getattr(each, name) for each in counted) for name in ("prompt_tokens", "output_tokens")
        )
        return Part(True, f"{asked:,} tokens of prompts and {said:,} of answers in {len(counted)} calls")

    async def _context(self) -> Part:
        known = self._client.capabilities(self._name)
        size, price = known.context_window, known.price(known.context_window)
        if not self._costly and not (price is not None and not price.input) and not self._client.local:
            return Part(None, f"{size:,} tokens by the table; --context tries it, which may cost money")
        if size > TESTED_CONTEXT:
            return Part(None, f"{size:,} tokens are too many to be tried")
        # Words of a token each: more than fits, so that nothing has to be read by the model.
        text = "word " * (size + size // 8)
        try:
            answer = await self._ask(text, max_tokens=1)
        except ModelError as error:
            if error.kind is ModelErrorKind.TOO_LARGE:
                said = self._name in self._client.learned.models or known.known
                assumed = "" if said else " are assumed, as the server did not say"
                return Part(said or None, f"{size:,} tokens{assumed}; a longer prompt is refused")
            raise
        took = answer.usage.prompt_tokens
        if answer.usage.estimated or took > size:
            return Part(True, f"more than {size:,} tokens: give its context in models.toml")
        return Part(False, f"a longer prompt is cut to {took:,} tokens without a word")


async def test_model(client: MessagesClient, choice: ModelChoice, options: argparse.Namespace) -> Answer:
    """Try one model; exit code 1 where a part fails."""
    wanted = options.name or choice.name
    await client.learn(wanted, afresh=True)
    name = client.named(wanted)
    if name == AUTO and not client.learned.models:
        name = wanted
    test = ModelTest(client, name, options.timeout_s, costly=options.context)
    results: dict[str, Part] = {}
    for part, work in test.parts.items():
        results[part] = await test.run(work)
        if part == "streaming" and not results[part].ok:
            break
    marks = {True: "✓", False: "✗", None: "–"}
    lines = [
        f"{marks[part.ok]} {title:10} {f'{part.seconds:.1f} s':>8}  {clean_line(part.said, limit=300)}"
        for title, part in results.items()
    ]
    refused = client.learned.refused.get(name, [])
    lines += [f"  left out from now on, as the server refuses it: {', '.join(refused)}"] if refused else []
    failed = any(part.ok is False for part in results.values())
    rows = {title: asdict(part) for title, part in results.items()}
    answer = {"ok": not failed, "model": name, "endpoint": choice.endpoint.host, "parts": rows}
    return (
        int(failed),
        {**answer, "refused": refused},
        "\n".join([f"{name} at {choice.endpoint.host}", *lines]),
    )
