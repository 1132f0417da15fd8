"""Where a model is asked: the address, the key and how long to wait."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal
from urllib.parse import urlsplit

from engine.models.errors import ModelError, ModelErrorKind
from engine.models.request import ModelRequest
from engine.value import dataclass

DEFAULT_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com"
AUTO = "auto"
"""Stands for the first model that the endpoint has, where none was chosen of a server of one's own."""
Api = Literal["", "messages", "openai"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that speaks the Messages API or that of OpenAI; its key never shows.

    Raises:
        ModelError: AUTHENTICATION where a key is needed and missing, or would go over the network in clear;
            BAD_REQUEST where the address is none.
    """

    base_url: str = DEFAULT_URL
    """Without `/v1`, which may be given."""
    key: str = field(default="", repr=False)
    api: Api = ""
    """What it speaks; found by trial where it is not said."""

    def __post_init__(self) -> None:
        parts = _split(self.base_url)
        host = parts.hostname or ""
        object.__setattr__(self, "base_url", self.base_url.rstrip("/").removesuffix("/v1").rstrip("/"))
        if not self.key and (self.anthropic or host == "api.openai.com"):
            vendor = "ANTHROPIC" if self.anthropic else "OPENAI"
            raise ModelError(
                ModelErrorKind.AUTHENTICATION,
                f"no key for the model: set {vendor}_API_KEY, or {vendor}_BASE_URL for a server of your own",
            )
        if self.key and not (self.key.isascii() and self.key.isprintable() and " " not in self.key):
            raise ModelError(
                ModelErrorKind.AUTHENTICATION,
                "the key for the model has blanks or characters that no key has: set ANTHROPIC_API_KEY again",
            )
        if self.key and parts.scheme == "http" and not self.loopback:
            raise ModelError(
                ModelErrorKind.AUTHENTICATION, f"the key would go to {host} in clear: use https, or no key"
            )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], url: str = "", api: Api = "") -> Endpoint | None:
        """The endpoint that environment and settings name; None where neither does.

        Args:
            environ: `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY` (or `ANTHROPIC_AUTH_TOKEN`), else
                `OPENAI_BASE_URL` and `OPENAI_API_KEY`.
            url: the address in the settings, which counts where the environment names none.
            api: what it speaks, as the settings say.
        """
        given = {name: environ.get(name, "").strip() for name in _VARIABLES}
        theirs, ours = given["OPENAI_BASE_URL"], given["ANTHROPIC_BASE_URL"]
        keys = (given["ANTHROPIC_API_KEY"] or given["ANTHROPIC_AUTH_TOKEN"], given["OPENAI_API_KEY"])
        if ours or (not theirs and not url and keys[0] and api != "openai"):
            return cls(ours or DEFAULT_URL, keys[0], api if ours else "messages")
        if theirs or (not url and keys[1]):
            return cls(theirs or OPENAI_URL, keys[1], "openai")
        if not url:
            return None
        # A key goes only where its own vendor's address was asked for, or what the settings say it is for.
        return cls(url, keys[1] if api == "openai" else keys[0] if api == "messages" else "", api)

    @property
    def anthropic(self) -> bool:
        """Whether it is the one of Claude's maker, which needs no trial."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "anthropic.com" or host.endswith(".anthropic.com")

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.base_url).netloc

    def without_key(self, text: str) -> str:
        """A text in which the key, should it be there, is replaced."""
        return text.replace(self.key, "[key]") if self.key else text

    def __reduce__(self) -> Any:
        # A pickle or a copy.deepcopy into a state would carry the key along.
        raise TypeError("an endpoint is not copied into files: it holds a key")


_VARIABLES = (
    *("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    *("OPENAI_BASE_URL", "OPENAI_API_KEY"),
)


def _split(url: str) -> Any:
    wrong = "http://127.0.0.1:8080 or https://host is what it should look like"
    try:
        parts = urlsplit(url)
        port_given = parts.port is None or parts.port > 0
    except ValueError:
        raise ModelError(ModelErrorKind.BAD_REQUEST, f"the model's address is no URL: {wrong}") from None
    if parts.username or parts.password:
        # Said without the address, which holds a secret.
        raise ModelError(
            ModelErrorKind.BAD_REQUEST,
            "the model's address has a user or password in it: put the key into ANTHROPIC_API_KEY",
        )
    good = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
    if not good or not port_given or parts.query or parts.fragment:
        raise ModelError(ModelErrorKind.BAD_REQUEST, f"the model's address cannot be used: {wrong}")
    return parts


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each part of a call may take, in seconds."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    """From sending to the first byte of the answer's body, connecting included."""
    between_s: float = 60.0
    """Between two pieces of the answer; the endpoint's signs of life count as pieces."""
    total_s: float = 600.0
    """For the whole call with its retries and waits."""


@dataclass(frozen=True, slots=True)
class Retries:
    """When a failed call is made again: exponential back-off with full jitter."""

    attempts: int = 3
    """All attempts of a call, the first included."""
    base_s: float = 0.5
    cap_s: float = 30.0
    """Longest wait drawn."""
    patience_s: float = 60.0
    """Longest wait that an endpoint may ask for; beyond it the call fails and says so."""

    def ceiling(self, retry: int) -> float:
        """The longest wait before a retry, counted from 1; the wait is drawn evenly between 0 and this."""
        return min(self.cap_s, self.base_s * 2.0 ** min(retry - 1, 30))


def create_arguments(request: ModelRequest) -> dict[str, Any]:
    """The arguments of `messages.create`, whose signature has no sampling: that goes beside them."""
    body = request.body()
    extra = {"extra_body": {"temperature": body.pop("temperature")}} if "temperature" in body else {}
    return {**body, **extra}
