"""What an endpoint said of itself: which models it has, what they take, and what it refused.

Asked once a session, when a model is first needed, and kept in a file of the user's for the next.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.user_key import read_own, write_own
from engine.model import LateModel
from engine.models.endpoint import Api, Endpoint
from engine.models.messages import Message, Text
from engine.models.model_table import ModelRow
from engine.models.request import ModelRequest

if TYPE_CHECKING:
    import httpx2

ASKING_S = 3.0
"""Longest wait for what a server says of itself."""
OLLAMA_CONTEXT = 4_096
"""What Ollama gives a model where nobody said more, however much the model could take."""
MODELS_LIMIT = 500


class Learned(BaseModel, metaclass=LateModel):
    """What is known of an endpoint."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    server: str = Field(default="", max_length=40)
    """What it is, such as `llama.cpp`; empty where it did not say."""
    api: Api = ""
    """What it speaks, where that was found out."""
    models: dict[str, ModelRow] = Field(default_factory=dict)
    refused: dict[str, list[str]] = Field(default_factory=dict)
    """Parts of requests that it refused, by model."""


class _File(BaseModel, metaclass=LateModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)
    endpoints: dict[str, Learned] = Field(default_factory=dict)


def load(path: Path | None, url: str) -> Learned:
    """What an earlier session learnt; nothing where the file cannot be read. Blocking."""
    return _read(path).endpoints.get(url, Learned())


def _read(path: Path | None) -> _File:
    with suppress(OSError, ValidationError, ValueError):
        if path is not None:
            return _File.model_validate_json(read_own(path) or b"{}")
    return _File()


def save(path: Path | None, url: str, learned: Learned) -> None:
    """Keep what was learnt for later sessions; where it cannot be kept it is asked for again. Blocking."""
    if path is None:
        return
    file = _read(path)
    file.endpoints[url] = learned
    with suppress(OSError):
        write_own(path, file.model_dump_json(indent=1, exclude_defaults=True).encode())


async def ask_server(http: httpx2.AsyncClient, endpoint: Endpoint, model: str) -> Learned | None:
    """What a server says of its models, and of one in particular; None where it could not be asked.

    The forms of answers are held by the API of OpenAI alone, which is spoken unless the other was asked for.

    Args:
        http: carries the requests.
        endpoint: who is asked.
        model: the model that is needed; empty for the first one that it has.
    """
    key = endpoint.key
    headers = {"authorization": f"Bearer {key}", "x-api-key": key} if key else {}

    async def ask(method: str, path: str, **sent: Any) -> Any:
        response = await http.request(method, f"{endpoint.base_url}{path}", headers=headers, **sent)
        with suppress(ValueError):
            return response.json() if response.status_code == 200 else None
        return None

    import httpx2

    try:
        async with asyncio.timeout(ASKING_S):
            listed = await ask("GET", "/v1/models")
            entries = [each for each in _list(listed, "data") if isinstance(each.get("id"), str)]
            learned = Learned(models={each["id"]: _row(each) for each in entries[:MODELS_LIMIT]})
            model = model or next(iter(learned.models), "")
            owner = str(entries[0].get("owned_by", "")) if entries else ""
            if owner in ("llamacpp", ""):
                _take_props(learned, await ask("GET", "/props"), model)
            if not learned.server and owner in ("library", "") and model:
                shown = await ask("POST", "/api/show", json={"model": model})
                running = await ask("GET", "/api/ps") if shown else None
                _take_show(learned, shown, running, model)
            if endpoint.api == "messages":
                rows = learned.models.items()
                learned.models = {name: row.model_copy(update={"json_schema": False}) for name, row in rows}
    except (TimeoutError, httpx2.HTTPError):
        return None
    return learned


def _list(value: Any, key: str) -> list[dict[str, Any]]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _size(*values: Any) -> int | None:
    """The first of some values that can be a number of tokens."""
    return next((each for each in values if isinstance(each, int) and 512 <= each <= 100_000_000), None)


def _row(entry: Mapping[str, Any]) -> ModelRow:
    """A model in the list of a server: what llama.cpp, vLLM and OpenRouter say beside its name."""
    context = _size(*(entry.get(name) for name in ("max_model_len", "context_length")))
    row: dict[str, Any] = {
        "name": entry["id"][:200],
        "context": context or _size(_at(entry, "meta", "n_ctx")),
    }
    with suppress(ArithmeticError, KeyError, TypeError, ValueError):
        prices = [Decimal(str(entry["pricing"][name])) * 1_000_000 for name in ("prompt", "completion")]
        if all(0 <= price <= 1_000_000 for price in prices):
            row["price_in"], row["price_out"] = prices
    taken = entry.get("supported_parameters")
    if isinstance(taken, list):
        row |= {"tools": "tools" in taken, "json_schema": "structured_outputs" in taken}
    return ModelRow(**row)


def _take_props(learned: Learned, props: Any, model: str) -> None:
    """What llama.cpp says of the one model that it has."""
    context = _size(_at(props, "default_generation_settings", "n_ctx"))
    if context is None:
        return
    learned.server, learned.api = "llama.cpp", "openai"
    able = _at(props, "chat_template_caps", "supports_tools")
    tools = able if isinstance(able, bool) else "tools" in str(_at(props, "chat_template") or "")
    for name in learned.models or ([model] if model else []):
        learned.models[name] = ModelRow(name=name, context=context, tools=tools, json_schema=True)


def _take_show(learned: Learned, shown: Any, running: Any, model: str) -> None:
    """What Ollama says of a model: the context that it gives it, not the one that it could."""
    facts = _at(shown, "model_info")
    if not isinstance(facts, Mapping):
        return
    learned.server, learned.api = "Ollama", "openai"
    most = _size(*(value for name, value in facts.items() if name.endswith(".context_length")))
    given = re.search(r"^num_ctx\s+(\d+)", str(_at(shown, "parameters") or ""), re.MULTILINE)
    loaded = [each.get("context_length") for each in _list(running, "models") if each.get("name") == model]
    context = _size(*loaded, int(given[1]) if given else None) or min(OLLAMA_CONTEXT, most or OLLAMA_CONTEXT)
    able = _at(shown, "capabilities")
    tools = "tools" in able if isinstance(able, list) else None
    learned.models[model] = ModelRow(name=model, context=context, tools=tools, json_schema=True)


PARTS = {
    "thinking": r"thinking",
    "effort": r"effort|output_config",
    "cache_control": r"cache_control|caching",
    "json_schema": r"response_format|json_schema|output_config|grammar",
    "tool_choice": r"tool_choice",
    "temperature": r"temperature",
    "stream_options": r"stream_options|include_usage",
    "max_tokens": r"max_tokens.*max_completion_tokens",
    "system": r"\bsystem\b",
    "tools": r"\btools?\b|--jinja",
}
"""Parts of a request that a server may refuse, and how it names them; those that matter least come first."""


_ABSENT: Mapping[str, dict[str, Any]] = {
    "thinking": {"thinking_adaptive": False, "thinking_budget": None},
    "effort": {"effort": ""},
    "json_schema": {"json_schema": None},
    "tool_choice": {"tool_choice": ""},
    "temperature": {"temperature": None},
    "tools": {"tools": (), "tool_choice": ""},
}
"""What a request without a part has in its place."""


def named_part(message: str, request: ModelRequest, refused: frozenset[str]) -> str:
    """The part of a request that an error names; empty where it names none that was sent."""
    sent = [part for part in PARTS if part not in refused and without(request, part) is not request]
    return next((part for part in sent if re.search(PARTS[part], message, re.IGNORECASE)), "")


def without(request: ModelRequest, part: str) -> ModelRequest:
    """A request without one of its parts; the same object where it has none of it."""
    if part == "cache_control":
        return _uncached(request)
    if part == "system":
        return _without_system(request) if request.system else request
    if part in ("stream_options", "max_tokens"):
        return replace(request)  # the API of OpenAI alone has them, and is told by name
    made = replace(request, **_ABSENT[part])
    return made if made != request else request


def _uncached(request: ModelRequest) -> ModelRequest:
    def plain(block: Any) -> Any:
        return replace(block, cache=False) if isinstance(block, Text) and block.cache else block

    system = tuple(map(plain, request.system))
    messages = tuple(replace(turn, content=tuple(map(plain, turn.content))) for turn in request.messages)
    made = replace(request, system=system, messages=messages, cache_tools=False)
    return made if made != request else request


def _without_system(request: ModelRequest) -> ModelRequest:
    """What stood before the exchange stands at its beginning."""
    first, *others = request.messages
    begun = Message(first.role, (*request.system, *first.content))
    return replace(request, system=(), messages=(begun, *others))
