"""Plain HTTP to a model's endpoint, and what goes wrong with it in our words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from engine.core.text import clean_line
from engine.models.endpoint import Endpoint, Timeouts
from engine.models.errors import ModelError, ModelErrorKind


def open_http(endpoint: Endpoint, timeouts: Timeouts) -> httpx2.AsyncClient:
    """A client for an endpoint; the caller closes it."""
    # The limits of reading are the caller's: one for the first byte, one between pieces.
    # No proxy is to see what goes to this machine itself, and no redirect to take the key elsewhere.
    # Certificates take 20 ms to read, and none is used where no TLS is spoken and nothing leaves the machine.
    plain = endpoint.loopback and endpoint.base_url.startswith("http://")
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=timeouts.connect_s),
        trust_env=not endpoint.loopback,
        follow_redirects=False,
        verify=not plain,
    )


@contextmanager
def plain_http_errors(endpoint: Endpoint, timeouts: Timeouts) -> Iterator[None]:
    """Turns what the HTTP client raises into `ModelError`."""
    try:
        yield
    except httpx2.TimeoutException:
        raise no_connection(endpoint, timeouts) from None
    except httpx2.TransportError as error:
        raise broken(endpoint, error) from None
    except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
        raise not_readable(endpoint, error) from None


def no_connection(endpoint: Endpoint, timeouts: Timeouts) -> ModelError:
    """Nobody answered there."""
    return ModelError(
        ModelErrorKind.TIMEOUT,
        f"no connection to {endpoint.host} within {timeouts.connect_s:g} s: is it running and reachable?",
    )


def broken(endpoint: Endpoint, error: Exception) -> ModelError:
    """The connection failed."""
    cause = clean_line(str(error.__cause__ or error), limit=200) or "it broke off"
    return ModelError(
        ModelErrorKind.NETWORK,
        f"the connection to {endpoint.host} failed: {cause}: check the address and the network",
    )


def not_readable(endpoint: Endpoint, error: Exception) -> ModelError:
    """What came is not what the address was asked for."""
    return ModelError(
        ModelErrorKind.UNREADABLE,
        f"the answer of {endpoint.host} cannot be read: {clean_line(str(error), limit=200)}: "
        "check that the address is one of a model",
    )


EVENT_LIMIT = 8 * 1024 * 1024
"""Longest server-sent event in bytes; no answer of a model has a longer one."""


async def server_events(
    body: AsyncIterator[bytes], endpoint: Endpoint
) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    """The events of a stream, as they are complete."""
    headers = {"content-type": "text/event-stream"}
    response = httpx2.Response(200, headers=headers, content=body, request=httpx2.Request("GET", "/"))
    try:
        async for event in httpx2.EventSource(response, max_event_size=EVENT_LIMIT):
            yield event
    except httpx2.SSEError as error:
        raise not_readable(endpoint, error) from None


_KINDS = {
    402: (ModelErrorKind.PERMISSION, "the account has no credit: settle its billing"),
    403: (ModelErrorKind.PERMISSION, "the key may not do this: use another key or model"),
    404: (ModelErrorKind.NOT_FOUND, "no such model or address: check its name and {vendor}_BASE_URL"),
    405: (ModelErrorKind.NOT_FOUND, "no such address: check {vendor}_BASE_URL"),
    408: (ModelErrorKind.TIMEOUT, "the endpoint took too long"),
    413: (ModelErrorKind.TOO_LARGE, "the request is too large: shorten the goal or the context"),
    429: (ModelErrorKind.RATE_LIMIT, "too many requests or tokens: wait, or ask more seldom"),
    501: (ModelErrorKind.BAD_REQUEST, "the endpoint does not take the request"),
    503: (ModelErrorKind.OVERLOADED, "the endpoint is overloaded: wait and try again"),
    504: (ModelErrorKind.TIMEOUT, "the endpoint took too long: ask for less at once"),
    529: (ModelErrorKind.OVERLOADED, "the endpoint is overloaded: wait and try again"),
}
_WORDS = (
    (r"credit|billing|quota.*(exceed|exhaust)|insufficient_quota|payment", 402),
    (r"context (length|size|window)|too long|too many tokens|exceed_context_size", 413),
    (r"model .{0,80}(not found|does not exist|not exist)|unknown model|no such model", 404),
    (r"invalid api key|incorrect api key|expired|invalid x-api-key", 401),
)
"""What servers say in words under a status of another meaning."""


def of_status(status: int, headers: Mapping[str, str], said: object, endpoint: Endpoint) -> ModelError:
    """What a status means.

    Args:
        status: the HTTP status.
        headers: those of the answer.
        said: the body, read as JSON where it is some.
        endpoint: who was asked.
    """
    message = _message(said)
    meant = next((meaning for pattern, meaning in _WORDS if re.search(pattern, message, re.I)), status)
    meant = meant if status in (400, 403, 422, 429, 500) and not (status == 429 and meant != 402) else status
    vendor = "OPENAI" if endpoint.api == "openai" else "ANTHROPIC"
    if meant == 401:
        asked = f"the key is not accepted: check {vendor}_API_KEY"
        if not endpoint.key:
            asked = "the endpoint wants a key: check ANTHROPIC_API_KEY or OPENAI_API_KEY, and [model] api"
        kind, advice = ModelErrorKind.AUTHENTICATION, asked
    else:
        fallback = (
            (ModelErrorKind.SERVER, "the endpoint failed: try again, or look at its log")
            if status >= 500
            else (ModelErrorKind.BAD_REQUEST, "the endpoint does not take the request")
        )
        kind, advice = _KINDS.get(meant, fallback)
    shown = f": {message}" if message else ""
    return ModelError(
        kind,
        f"{advice.format(vendor=vendor)} ({endpoint.host}, {status}{shown})",
        status=status,
        retry_after_s=retry_after(headers.get("retry-after-ms"), headers.get("retry-after")),
        request_id=clean_line(headers.get("request-id", headers.get("x-request-id", "")), limit=100),
    )


def _message(said: object) -> str:
    """The message in an error's body: under `error` or bare, as text or in an object."""
    for _ in range(2):
        if isinstance(said, Mapping):
            said = said.get("error") or said.get("message") or said.get("detail") or ""
    text = said if isinstance(said, str) else json.dumps(said) if said else ""
    return "" if text.lstrip().startswith("<") else clean_line(text, limit=300)


def read_body(content: bytes) -> Any:
    """The body of an error: JSON where it is some, else its text."""
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")


def retry_after(milliseconds: str | None, value: str | None, *, now: datetime | None = None) -> float | None:
    """The seconds that an endpoint asks to wait, from its headers; None where they say nothing usable.

    `retry-after` is a number of seconds or an HTTP date.
    """
    seconds = _number(milliseconds)
    if seconds is not None:
        return seconds / 1000
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - (now or datetime.now(UTC))).total_seconds(), 0.0)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
