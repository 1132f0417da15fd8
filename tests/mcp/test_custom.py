"""Custom functions: looked at and called in the sandbox, where nothing that they do reaches us."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine.tools.mcp.custom_functions as custom
from engine.core.actions import ErrorCode, SandboxSession
from engine.core.ports import CallContext
from engine.sandbox.policy import SandboxPolicy
from engine.tools.mcp.custom_functions import CustomFunctionError, CustomFunctions

GOOD = '''
import sys
from typing import Literal
print("imported")

def add(a: int, b: int = 2, how: Literal["plain", "loud"] = "plain") -> int:
    """Add two numbers.

    More words.
    """
    print("printed")
    return a + b

async def later(names: list[str]) -> dict[str, int]:
    """Count letters."""
    return {name: len(name) for name in names}

def fails(a: int) -> int:
    """Fail."""
    raise ValueError("no")

def long(a: int) -> str:
    """Be long."""
    return "x" * a

def bare(a):
    """No hints."""

def silent(a: int) -> int:
    return a

def star(*a: int) -> int:
    """Star."""

number = 3
'''


@pytest.fixture
def functions(tmp_path: Path) -> CustomFunctions:
    room = tmp_path / "custom_tools"
    room.mkdir()
    (room / "good.py").write_text(GOOD)
    (room / "ends.py").write_text("import os\nprint('bye')\nos._exit(7)\n")
    (room / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (room / "sleeps.py").write_text("import time\ntime.sleep(60)\n")
    (room / "raises.py").write_text("1 / 0\n")
    return CustomFunctions(tmp_path, SandboxPolicy())


async def look_wrong(functions: CustomFunctions, path: str, **more: object) -> CustomFunctionError:
    with pytest.raises(CustomFunctionError) as caught:
        await functions.look("x", f"custom_tools.{path}", **more)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return caught.value


async def test_a_module_that_prints_sleeps_or_ends_its_process_hurts_nobody(
    functions: CustomFunctions, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Line 45."""
    assert "ended its process with 7: bye" in str(await look_wrong(functions, "ends.f"))
    assert "SystemExit: 3" in str(await look_wrong(functions, "exits.f"))
    assert "ZeroDivisionError" in str(await look_wrong(functions, "raises.f"))
    assert "ModuleNotFoundError" in str(await look_wrong(functions, "gone.f"))
    monkeypatch.setattr(custom, "LOOK_S", 0.5)
    assert (await look_wrong(functions, "sleeps.f")).code is ErrorCode.TIMEOUT
    assert capfd.readouterr() == ("", "")


async def test_a_function_says_what_it_takes_and_is_called_in_the_sandbox(functions: CustomFunctions) -> None:
    add = await functions.look("add", "custom_tools.good.add")
    assert add.description == "Add two numbers."
    assert add.schema["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": "integer"},
        "how": {"enum": ["plain", "loud"]},
    }
    assert add.schema["required"] == ["a"]
    functions.add(add)
    functions.add(await functions.look("later", "custom_tools.good.later"))
    functions.add(await functions.look("fails", "custom_tools.good.fails"))
    functions.add(await functions.look("long", "custom_tools.good.long"))
    heard: list[tuple[str, str]] = []
    context = CallContext(SandboxSession(), output=lambda stream, text: heard.append((stream, text)))
    assert (await functions.call("add", {"a": 40}, context)).data == {"content": "42"}
    assert "printed" in "".join(text for stream, text in heard if stream == "stderr")
    assert (await functions.call("later", {"names": ["ab"]}, context)).data == {"content": '{"ab": 2}'}
    failed = await functions.call("fails", {"a": 1}, context)
    assert (failed.code, "ValueError: no" in failed.message) == (ErrorCode.EXIT_STATUS, True)
    assert len((await functions.call("long", {"a": 90_000}, context)).data["content"]) <= 25_000


async def test_what_cannot_be_a_tool_is_told_why(functions: CustomFunctions) -> None:
    assert "no type hint" in str(await look_wrong(functions, "good.bare"))
    assert "no docstring" in str(await look_wrong(functions, "good.silent"))
    assert "cannot be given by name" in str(await look_wrong(functions, "good.star"))
    assert "no function" in str(await look_wrong(functions, "good.number"))
    declared = {"properties": {"a": {"type": "string"}, "c": {}}}
    wrong = str(await look_wrong(functions, "good.add", declared=declared))
    assert "c is declared and the function does not take it" in wrong
    assert "a is declared as string and hinted as integer" in wrong
    for path in ("os.system", "custom_tools", "custom_tools..x", "custom_tools.x;y"):
        with pytest.raises(CustomFunctionError, match="may not be used"):
            await functions.look("x", path)
