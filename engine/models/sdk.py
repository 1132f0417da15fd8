"""The official SDK of the Messages API: how it is opened, and its errors in our words.

Importing it takes about a second, so this module is loaded in a thread once a model is asked. The SDK's own
retries, redirects, telemetry and credential files are off; a key comes from `Endpoint` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import anthropic
import anthropic.resources.messages  # what is loaded here is not loaded on the event loop later
import httpx2

from engine.models.endpoint import Endpoint, Timeouts, create_arguments
from engine.models.http import broken, no_connection, not_readable, of_status, plain_http_errors
from engine.models.request import ModelRequest
from engine.models.stream import WireEvent, wire_event


class MessagesWire:
    """Sends requests by the SDK and reads answers.

    Args:
        endpoint: who is asked.
        timeouts: how long connecting may take.
        http: carries the requests; whoever made it closes it.
    """

    def __init__(self, endpoint: Endpoint, timeouts: Timeouts, http: httpx2.AsyncClient) -> None:
        self._endpoint, self._timeouts = endpoint, timeouts
        self._sdk = _open_sdk(endpoint, timeouts, http)

    async def open(self, request: ModelRequest, _refused: frozenset[str]) -> httpx2.Response:
        """The beginning of an answer.

        Raises:
            ModelError: none came, or the server refuses the request.
        """
        with self.errors():
            stream = await self._sdk.messages.create(**create_arguments(request), stream=True)
            response: httpx2.Response = stream.response
            return response

    def errors(self) -> AbstractContextManager[None]:
        """Turns what reading raises into `ModelError`."""
        return _plain_errors(self._endpoint, self._timeouts)

    def reader(self) -> Callable[[httpx2.ServerSentEvent], Iterator[WireEvent]]:
        """What reads one answer."""
        return _read


def _read(event: httpx2.ServerSentEvent) -> Iterator[WireEvent]:
    yield wire_event(event)


def _open_sdk(endpoint: Endpoint, timeouts: Timeouts, http: httpx2.AsyncClient) -> anthropic.AsyncAnthropic:
    headers: Any = {} if endpoint.key else {"Authorization": anthropic.omit}
    return anthropic.AsyncAnthropic(
        # An empty key is still a given one: the SDK then looks for no other on this machine.
        api_key=endpoint.key,
        base_url=endpoint.base_url,
        timeout=httpx2.Timeout(None, connect=timeouts.connect_s),
        max_retries=0,
        default_headers=headers,
        http_client=http,
        open_telemetry=False,
    )


@contextmanager
def _plain_errors(endpoint: Endpoint, timeouts: Timeouts) -> Iterator[None]:
    """Turns what the SDK and its HTTP client raise into `ModelError`."""
    try:
        with plain_http_errors(endpoint, timeouts):
            yield
    except anthropic.APIStatusError as error:
        said = error.body if error.body is not None else error.message
        raise of_status(error.status_code, error.response.headers, said, endpoint) from None
    except anthropic.APITimeoutError:
        raise no_connection(endpoint, timeouts) from None
    except anthropic.APIConnectionError as error:
        raise broken(endpoint, error) from None
    except anthropic.AnthropicError as error:
        raise not_readable(endpoint, error) from None
