"""What is decided without any server: settings, names, schemas, skills' tokens, global actions."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.types import Tool, ToolAnnotations

from engine.tools.mcp.health import truncate_result
from engine.tools.mcp.names import command_of, read_allowed, resolve
from engine.tools.mcp.settings import load, read
from engine.tools.mcp.tool import McpTool, command_spec
from engine.tools.registry import check_arguments, json_schema


def test_all_that_is_wrong_with_the_file_is_told_with_its_path() -> None:
    found = read(
        """{"a": {"command": "x", "args": [1, "--api-key=abc"], "env": {"MY_TOKEN": "abc"}, "comand": 1},
            "b b": {"url": "ftp://x"}, "c": {}, "d": {"url": "http://u:p@h/", "headers": {"X": "plain"}},
            "e": {"command": "x", "timeout_s": 0}, "f": {"url": "http://h/", "type": "sse"},
            "fine": {"command": "x", "env": ["HOME"], "args": ["y"]},
            "off": {"command": "x", "disabled": true}, "Fine": {"command": "x"}}"""
    )
    assert [one.name for one in found.servers] == ["fine"]
    assert found.servers[0].env == {"HOME": "${HOME}"}
    paths = {fault.path for fault in found.faults}
    assert paths == {
        *("a.args[0]", "a.args[1]", "a.env", "a.comand", "b b", "b b.url", "c"),
        *("d.url", "d.headers.X", "e.timeout_s", "f.type", "Fine"),
    }
    assert "abc" not in " ".join(map(str, found.faults)), "no secret is told"
    assert "Did you mean 'command'" in str(next(one for one in found.faults if one.path == "a.comand"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is no JSON: line 1 column 2"),
        ("[]", "it must be an object of servers by name"),
        ('{"a": {}, "a": {}}', "the key 'a' appears twice"),
        ("[" * 5_000, "it is no JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(text: str, said: str) -> None:
    (fault,) = read(text).faults
    assert said in str(fault)
    assert str(fault).startswith("mcp.json: ")
    assert "\n" not in str(fault)


def test_a_file_from_the_disk(tmp_path: Path) -> None:
    assert load(tmp_path).faults == ()
    (tmp_path / "mcp.json").write_bytes(b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "x"}}}')
    assert [one.name for one in load(tmp_path).servers] == ["a"]
    (tmp_path / "mcp.json").write_bytes(b"\xff")
    assert "not UTF-8" in str(load(tmp_path).faults[0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("neo4j.read_neo4j_cypher", ("Neo4j", "read_neo4j_cypher")),
        ("mcp__neo4j__read_neo4j_cypher", ("Neo4j", "read_neo4j_cypher")),
        ("Neo4j:read_neo4j_cypher", ("Neo4j", "read_neo4j_cypher")),
        ("neo4j.read_cypher", ("Neo4j", "read_neo4j_cypher")),
        ("mcp__neo4j__read_cypher", ("Neo4j", "read_neo4j_cypher")),
        ("neo4j.drop", None),
        ("web.search", None),
        ("neo4j", None),
        ("", None),
    ],
)
def test_a_tool_is_found_by_each_spelling(text: str, found: tuple[str, str] | None) -> None:
    assert resolve(text, {"Neo4j": ["read_neo4j_cypher"], "files": ["read"]}) == found


def test_a_name_that_models_cannot_use_is_changed_and_stays_unique() -> None:
    assert command_of("s", "read_it") == "read_it"
    changed = {command_of("s", name) for name in ("a.b", "a/b", "a:b", "x" * 90, "x" * 91)}
    assert len(changed) == 5
    assert all(len(f"s__{name}") <= 64 for name in changed)


def test_a_schema_becomes_parameters_and_what_they_cannot_say_is_left_to_the_server() -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}, "who": {"type": ["string", "null"]}},
        "required": ["n"],
        "oneOf": [{"required": ["n"]}],
        "additionalProperties": False,
    }
    tool = Tool(name="t", description="does\x1b[31m it\nwell", input_schema=schema)
    spec = command_spec("t", tool)
    assert spec.description == "does it well"
    assert (spec.mutates, spec.writes, spec.undo) == (True, True, "irreversible")
    assert check_arguments(spec, {"n": 1}).args == {"n": 1}, "what is left out stays out"
    assert "must be an integer" in check_arguments(spec, {"n": "1"}).message
    assert check_arguments(spec, {"n": 1, "who": None}).problems == ()
    assert "oneOf" not in json_schema(spec)
    assert json_schema(spec)["properties"]["n"]["minimum"] == 3
    free = command_spec("u", Tool(name="u", input_schema={"type": "object"}))
    assert check_arguments(free, {"whatever": [1]}).args == {"whatever": [1]}
    reads = Tool(name="r", input_schema={}, annotations=ToolAnnotations(read_only_hint=True))
    assert command_spec("r", reads).undo == "none"


def test_the_tokens_of_a_skill_mean_tools_that_are_here() -> None:
    commands, unresolved = read_allowed(
        "Read, Bash(git diff:*) Bash Bash(*), AskUserQuestion WebFetch mcp__x__y"
    )
    assert unresolved == ("WebFetch", "mcp__x__y")
    assert commands == ("simple_coder.read", "simple_coder.run git", "simple_coder.run", "crew.ask")
    assert read_allowed(["Read", "Glob"])[0][1:] == ("simple_coder.ls", "simple_coder.find")


def test_a_cut_says_how_much_is_gone() -> None:
    text = truncate_result("x" * 30_000)
    assert len(text) <= 25_000
    gone = int(text.rpartition("cut: ")[2].split()[0].replace(",", ""))
    assert text.count("x") + gone == 30_000
    assert McpTool.foreign
