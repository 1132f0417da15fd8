"""What is wrong with a call is said before it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.core.actions import ErrorCode, Reversibility
from engine.tools.registry import ToolRegistry, UnknownToolError
from engine.tools.simple_coder import SimpleCoder


@pytest.fixture
def registry(tmp_path: Path) -> ToolRegistry:
    return ToolRegistry([SimpleCoder(tmp_path)])


def test_a_correct_call_has_no_problem(registry: ToolRegistry) -> None:
    assert registry.validate("simple_coder", "write", {"path": "a", "content": ""}) == []


def test_defaults_are_filled_in(registry: ToolRegistry) -> None:
    assert registry.check("simple_coder", "ls", {}).args == {"path": "."}
    assert registry.check("simple_coder", "ls", {"path": None}).args == {"path": "."}


def test_an_unknown_tool_is_named_with_the_nearest(registry: ToolRegistry) -> None:
    (problem,) = registry.validate("simple_code", "ls", {})
    assert problem.code is ErrorCode.UNKNOWN_TOOL
    assert "Did you mean 'simple_coder'?" in problem.message
    with pytest.raises(UnknownToolError, match="Did you mean"):
        registry.get("simple_code")


def test_an_unknown_command_is_named_with_the_nearest_and_all(registry: ToolRegistry) -> None:
    (problem,) = registry.validate("simple_coder", "mkdirs", {})
    assert problem.code is ErrorCode.UNKNOWN_COMMAND
    assert "Did you mean 'mkdir'" in problem.message
    assert "activate_venv" in problem.message


@pytest.mark.parametrize(
    ("args", "argument", "words"),
    [
        ({"path": "a"}, "content", "needs the argument 'content' (a string)"),
        ({"path": "a", "content": None}, "content", "must be a string, not None"),
        ({"path": "a", "content": 5}, "content", "must be a string, not 5"),
        ({"path": ["a"], "content": "x"}, "path", "must be a string, not ['a']"),
        ({"path": "a", "content": "x", "contents": "y"}, "contents", "Did you mean 'content'"),
        ({"path": "a", "content": "x", "command": "rm"}, "command", "It takes 'path', 'content'."),
    ],
)
def test_each_wrong_argument_is_named(
    registry: ToolRegistry, args: dict[str, Any], argument: str, words: str
) -> None:
    (problem,) = registry.validate("simple_coder", "write", args)
    assert (problem.code, problem.argument) == (ErrorCode.BAD_ARGUMENTS, argument)
    assert words in problem.message


def test_every_problem_of_a_call_is_listed(registry: ToolRegistry) -> None:
    problems = registry.validate("simple_coder", "write", {"paht": "a"})
    assert [problem.argument for problem in problems] == ["paht", "path", "content"]


def test_run_takes_a_string_or_words(registry: ToolRegistry) -> None:
    assert registry.validate("simple_coder", "run", {"command": "ls -l"}) == []
    assert registry.validate("simple_coder", "run", {"command": ["ls", "-l"]}) == []
    assert registry.validate("simple_coder", "run", {"command": ["ls", 1]})


def test_schemas_are_json_schema_with_names_that_models_accept(registry: ToolRegistry) -> None:
    schemas = {schema["command"]: schema for schema in registry.schemas()}
    assert schemas["write"]["input_schema"]["required"] == ["path", "content"]
    assert schemas["write"]["input_schema"]["additionalProperties"] is False
    assert schemas["ls"]["input_schema"]["properties"]["path"]["default"] == "."
    assert "anyOf" in schemas["run"]["input_schema"]["properties"]["command"]
    assert all(schema["name"].replace("_", "").isalnum() for schema in schemas.values())


def test_commands_say_whether_they_can_be_undone(registry: ToolRegistry) -> None:
    commands = registry.get("simple_coder").commands
    changing = {name for name, spec in commands.items() if spec.undo == Reversibility.WORKSPACE}
    assert changing == {"mkdir", "write", "append", "replace", "move", "copy", "rm", "create_venv"}
    lasting = {name for name, spec in commands.items() if spec.undo == Reversibility.IRREVERSIBLE}
    assert lasting == {"run", "start", "stop_job", "shell"}
    assert {name for name, spec in commands.items() if spec.mutates} == changing | lasting


def test_a_tool_name_is_taken_once(registry: ToolRegistry, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="registered already"):
        registry.register(SimpleCoder(tmp_path))
