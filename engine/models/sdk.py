"""The official SDK: how it is opened, and its errors in our words.

Importing it takes about a second, so this module is loaded in a thread once a model is asked. The SDK's own
retries, redirects, telemetry and credential files are off; a key comes from `Endpoint` alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import anthropic
import anthropic.resources.messages  # what is loaded here is not loaded on the event loop later
import httpx2

from engine.core.text import clean_line
from engine.models.endpoint import Endpoint, Timeouts
from engine.models.errors import ModelError, ModelErrorKind


def open_sdk(endpoint: Endpoint, timeouts: Timeouts) -> anthropic.AsyncAnthropic:
    """The SDK's client for an endpoint; the caller closes it."""
    # The limits of reading are the caller's: one for the first byte, one between pieces.
    timeout = httpx2.Timeout(None, connect=timeouts.connect_s)
    # No proxy is to see what goes to this machine itself, and no redirect to take the key elsewhere.
    # Certificates take 20 ms to read, and none is used where no TLS is spoken and nothing leaves the machine.
    plain = endpoint.loopback and endpoint.base_url.startswith("http://")
    http = httpx2.AsyncClient(
        timeout=timeout, trust_env=not endpoint.loopback, follow_redirects=False, verify=not plain
    )
    headers: Any = {} if endpoint.key else {"Authorization": anthropic.omit}
    return anthropic.AsyncAnthropic(
        # An empty key is still a given one: the SDK then looks for no other on this machine.
        api_key=endpoint.key,
        base_url=endpoint.base_url,
        timeout=timeout,
        max_retries=0,
        default_headers=headers,
        http_client=http,
        open_telemetry=False,
    )


@contextmanager
def plain_errors(endpoint: Endpoint, timeouts: Timeouts) -> Iterator[None]:
    """Turns what the SDK and its HTTP client raise into `ModelError`."""
    try:
        yield
    except anthropic.APIStatusError as error:
        raise _of_status(error, endpoint) from None
    except (anthropic.APITimeoutError, httpx2.TimeoutException):
        raise ModelError(
            ModelErrorKind.TIMEOUT,
            f"no connection to {endpoint.host} within {timeouts.connect_s:g} s: is it running and reachable?",
        ) from None
    except (anthropic.APIConnectionError, httpx2.TransportError) as error:
        cause = clean_line(str(error.__cause__ or error), limit=200) or "it broke off"
        raise ModelError(
            ModelErrorKind.NETWORK,
            f"the connection to {endpoint.host} failed: {cause}: check the address and the network",
        ) from None
    except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError) as error:
        raise ModelError(
            ModelErrorKind.UNREADABLE,
            f"the answer of {endpoint.host} cannot be read: {clean_line(str(error), limit=200)}: "
            "check that the address is one of the Messages API",
        ) from None


_KINDS = {
    401: (ModelErrorKind.AUTHENTICATION, "the key is not accepted: check ANTHROPIC_API_KEY"),
    402: (ModelErrorKind.PERMISSION, "the account has no credit: settle its billing"),
    403: (ModelErrorKind.PERMISSION, "the key may not do this: use another key or model"),
    404: (ModelErrorKind.NOT_FOUND, "no such model or address: check its name and ANTHROPIC_BASE_URL"),
    408: (ModelErrorKind.TIMEOUT, "the endpoint took too long"),
    413: (ModelErrorKind.TOO_LARGE, "the request is too large: shorten the goal or the context"),
    429: (ModelErrorKind.RATE_LIMIT, "too many requests or tokens: wait, or ask more seldom"),
    503: (ModelErrorKind.OVERLOADED, "the endpoint is overloaded: wait and try again"),
    504: (ModelErrorKind.TIMEOUT, "the endpoint took too long: ask for less at once"),
    529: (ModelErrorKind.OVERLOADED, "the endpoint is overloaded: wait and try again"),
}


def _of_status(error: anthropic.APIStatusError, endpoint: Endpoint) -> ModelError:
    status, headers = error.status_code, error.response.headers
    fallback = (
        (ModelErrorKind.SERVER, "the endpoint failed: try again, or look at its log")
        if status >= 500
        else (ModelErrorKind.BAD_REQUEST, "the endpoint does not take the request")
    )
    kind, advice = _KINDS.get(status, fallback)
    message = clean_line(error.api_message or "", limit=300) if isinstance(error.api_message, str) else ""
    return ModelError(
        kind,
        f"{advice} ({endpoint.host}, {status}{': ' + message if message else ''})",
        status=status,
        retry_after_s=retry_after(headers.get("retry-after-ms"), headers.get("retry-after")),
        request_id=clean_line(headers.get("request-id", ""), limit=100),
    )


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
