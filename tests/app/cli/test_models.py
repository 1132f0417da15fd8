"""`pilothouse models` says what is known of each model and from where, and tries one against real servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.messages_server import Reply, call, failure
from tests.messages_server.server import Seen, serving
from tests.openai_server import OpenAiServer

TABLE = '[[model]]\nname = "small"\nprice_in = 1\nprice_out = 2\n[[model]]\nname = "other"\ncontxt = 5\n'
PAGES = {
    "/v1/models": {"data": [{"id": "small", "owned_by": "llamacpp"}]},
    "/props": {
        "default_generation_settings": {"n_ctx": 2048},
        "chat_template_caps": {"supports_tools": True},
    },
}


def answer(seen: Seen) -> Reply:
    """What a good model says to each part of the test."""
    said = seen.said()
    if said.count("word ") > 2_000:
        return failure(400, "invalid_request_error", "prompt is too long: 2304 tokens > 2048 maximum")
    if "Look up" in said:
        return call("look_up", {"city": "Paris", "country": "France"})
    if "Name a city" in said:
        return Reply(text='{"city": "Paris", "country": "France"}')
    if "long story" in said:
        return Reply(text="once " * 100, after=5, then="hold")
    return Reply(text="1, 2, 3, 4, 5, 6, 7, 8, 9")


def pilothouse(workspace: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    known = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC", "OPENAI"))
    }
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *words, "--workspace", str(workspace)],
        capture_output=True,
        text=True,
        check=False,
        env={**known, "PILOTHOUSE_HOME": str(workspace / "home"), **environ},
    )


@contextmanager
def openai(given: Callable[[Seen], Reply]) -> Iterator[str]:
    with serving(given, lambda script: OpenAiServer(script, repeat=True, pages=PAGES)) as url:
        yield url


def test_the_list_says_from_where_each_fact_is_and_what_is_wrong_with_the_table(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models.toml").write_text(TABLE)
    with openai(answer) as url:
        made = pilothouse(tmp_path, "models", "--json", OPENAI_BASE_URL=f"{url}/v1")
    [row] = json.loads(made.stdout)["models"]
    assert (row["name"], row["context"], row["price"], row["profile"]) == ("small", 2048, [1.0, 2.0], "tiny")
    assert row["from"]["context"] == "llama.cpp"
    assert row["from"]["price_in"].endswith("models.toml:1")
    assert "models.toml:7: contxt" in made.stderr


@pytest.mark.parametrize("api", ["openai", "messages"])
def test_each_kind_of_server_passes_the_test(api: str, tmp_path: Path) -> None:
    if api == "openai":
        with openai(answer) as url:
            made = pilothouse(tmp_path, "models", "test", "--json", OPENAI_BASE_URL=url)
        expected = dict.fromkeys(("streaming", "tools", "schema", "cancel", "usage", "context"), True)
    else:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "models.toml").write_text('[[model]]\nname = "m"\ncontext = 2048\ntools = true')
        with serving(answer) as url:
            words = ("models", "test", "m", "--json")
            made = pilothouse(tmp_path, *words, ANTHROPIC_BASE_URL=url)
        expected = {
            "streaming": True,
            "tools": True,
            "schema": None,
            "cancel": True,
            "usage": True,
            "context": True,
        }
    said = json.loads(made.stdout)
    assert {name: part["ok"] for name, part in said["parts"].items()} == expected, said
    assert made.returncode == 0


def test_a_server_that_wants_a_key_fails_the_test_with_the_reason(tmp_path: Path) -> None:
    with openai(lambda _seen: failure(401, message="no key")) as url:
        made = pilothouse(tmp_path, "models", "test", OPENAI_BASE_URL=url)
    assert made.returncode == 1
    assert "✗ streaming" in made.stdout
    assert "wants a key" in made.stdout


def test_a_budget_in_dollars_is_refused_before_the_run_where_the_price_is_unknown(tmp_path: Path) -> None:
    with openai(answer) as url:
        words = ("run", "list the files", "--budget-usd", "1")
        made = pilothouse(tmp_path, *words, OPENAI_BASE_URL=url)
    assert made.returncode == 2
    assert "--budget-tokens" in made.stderr
    assert '[[model]]\nname = "small"\nprice_in' in made.stderr
    assert not (tmp_path / ".pilothouse").exists()


def test_without_a_model_it_says_how_to_have_one(tmp_path: Path) -> None:
    made: Any = pilothouse(tmp_path, "models")
    assert made.returncode == 2
    assert "OPENAI_BASE_URL" in made.stderr
