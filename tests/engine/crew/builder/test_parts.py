"""Phases 3 to 5, and the files of an agent: protocol, tools, graph rows, generated text."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.ports import SystemClock
from engine.crew.builder.architecture import draft_graph, draft_handoffs
from engine.crew.builder.findings import Findings, PendingBuild
from engine.crew.builder.phases import PHASES, BuildState, run_phase
from engine.crew.builder.registration import agent_files
from engine.crew.builder.skill import SkillDefinition, parse_skill, slug, unique
from engine.crew.builder.tools import check_tools, draft_tools
from engine.crew.builder.yaml_text import read_mapping, split_frontmatter, write_mapping
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ports import no_servers
from engine.crew.selection import Signal, chains_of, choose
from engine.sandbox.policy import SandboxPolicy
from engine.tools.mcp.process import ProgramEnvironment
from engine.tools.mcp.settings import McpSettings, ServerSettings
from engine.tools.mcp.workspace_servers import Servers
from tests.engine.crew.builder.corpus import SKILLS, plain, skill
from tests.engine.crew.builder.folders import from_text
from tests.rounds import rounds


def definition(head: str, body: str = "\nDo it.\n") -> SkillDefinition:
    found = Findings()
    read = parse_skill(from_text(skill(head, body)), found)
    assert read is not None, [str(one) for one in found.all]
    return read


def codes(found: Findings) -> set[str]:
    return {one.code for one in found.all}


async def drafted(
    data: bytes, tmp_path: Path, *, sidecar: str = "", lacks: Any = no_servers, **overrides: Any
) -> tuple[BuildState, list[Findings]]:
    """A skill through the five phases that write nothing, each with what it found."""
    folder = from_text(data)
    work = BuildState(PendingBuild(tmp_path, overrides=overrides), lacks, folder)
    told = []
    for _, phase in PHASES:
        found = Findings()
        checks = await run_phase(phase, work, found)
        if sidecar and work.sidecar == {}:
            work.sidecar = read_mapping(sidecar, typed=True)[0]
        told.append(found)
        if found.errors or not all(one.passed for one in checks):
            break
    work.folder = folder
    return work, told


def test_ids_are_made_of_any_name() -> None:
    assert slug('Devil\'s "Advocate" \\n') == "devils-advocate-n"
    assert slug("Überblick für Straße") == "uberblick-fur-strasse"
    assert slug("日本語").startswith("agent-")
    assert slug("日本語") != slug("日本")
    assert slug("a" * 80) == "a" * 64
    taken: set[str] = set()
    assert [unique("a", taken) for _ in range(3)] == ["a", "a-2", "a-3"]


def test_inputs_and_outputs_are_fields_of_a_handoff() -> None:
    said = definition(
        plain("x") + "\nmetadata:\n  mindrian-inputs: problem_clarity.who, expected_output, budget"
        "\n  mindrian-outputs: total, key_findings"
    )
    found = Findings()
    handoff = draft_handoffs(said, found)
    assert handoff["receives"] == {"requires_who": True}
    assert handoff["returns"] == {"score_names": ["total"]}
    assert [one.message for one in found.all if one.code == "UNKNOWN_INPUT"] == [
        "the input budget is no field of a handoff; the task has to say it"
    ]


@pytest.mark.parametrize(
    ("sidecar", "phase", "code"),
    [
        ("handoff: {receives: {requires_budget: true}}", 3, "UNKNOWN_FIELD"),
        ("handoff: {routing: {can_delegate_to: [x]}}", 3, "SELF_ROUTE"),
        ("handoff: {supports: {transfer: true}}", 3, "TRANSFER_NOT_ALLOWED"),
        ("tools: {global_actions: [{action: look, tool: nowhere.look}]}", 4, "BAD_FUNCTION"),
        ("tools: {custom_tools: [{name: t, function: a.b}]}", 4, "BAD_FUNCTION"),
        ("chaining: {precedes: [{id: x}]}", 5, "SELF_EDGE"),
        ("chaining: {precedes: [{id: y, weight: 1.5}]}", 5, "WEIGHT_RANGE"),
        ("model: {thinking: budget, thinking_budget: 9000}", 2, "BAD_SPEC"),
        ("type: gizmo", 2, "UNKNOWN_TYPE"),
        ("type: pipeline\nphases: []", 2, "BAD_SPEC"),
    ],
)
async def test_what_a_sidecar_says_wrongly_ends_its_phase(
    sidecar: str, phase: int, code: str, tmp_path: Path
) -> None:
    _, told = await drafted(skill(plain("x")), tmp_path, sidecar=sidecar)
    assert (len(told), code) == (phase, told[-1].errors[0].code)
    assert told[-1].errors[0].where


async def test_a_sidecar_counts_above_the_skill_and_an_operator_above_both(tmp_path: Path) -> None:
    sidecar = "name: Another\ndescription: Said beside it\nmodel: {tier: deep}"
    work, told = await drafted(skill(plain("x")), tmp_path, sidecar=sidecar, name="The operator's")
    assert not any(one.errors for one in told)
    assert (work.spec.name, work.spec.description, work.spec.model.tier) == (
        "The operator's",
        "Said beside it",
        "deep",
    )


PLAIN = Path(__file__).parents[2] / "tools/mcp/servers" / "plain.py"


@asynccontextmanager
async def servers(place: Path) -> AsyncIterator[Servers]:
    """A server that works and one that is no server."""
    said = (
        ServerSettings("up", command=sys.executable, args=(str(PLAIN),)),
        ServerSettings("down", command=sys.executable, args=("-c", "raise SystemExit(1)")),
    )
    (place / "sandbox").mkdir(exist_ok=True)
    around = ProgramEnvironment(place, place / "sandbox", SandboxPolicy(), os.environ)
    started = Servers(McpSettings(said), around, SystemClock())
    started.begin()
    try:
        yield started
    finally:
        await started.close()


async def test_a_required_server_that_is_down_fails_and_an_optional_one_is_degraded(tmp_path: Path) -> None:
    """Line 52."""
    needs = "tools: {{mcp_servers: [{{server: {}, tools: [fail], required: true}}]}}"
    async with servers(tmp_path) as there:
        _, told = await drafted(skill(plain("x")), tmp_path, sidecar=needs.format("up"), lacks=there.lacks)
        assert (len(told), codes(told[3])) == (5, set())
        _, told = await drafted(skill(plain("x")), tmp_path, sidecar=needs.format("down"), lacks=there.lacks)
        assert (len(told), codes(told[3])) == (4, {"MCP_DOWN"})
        text = skill(plain("x") + "\nallowed-tools: mcp__down__fail")
        work, told = await drafted(text, tmp_path, lacks=there.lacks)
        assert (len(told), codes(told[3])) == (5, {"MCP_DEGRADED"})
        assert work.spec.tools.degraded == ("down",)
    _, told = await drafted(skill(plain("x")), tmp_path, sidecar=needs.format("nobodys"))
    assert "no servers are configured here" in told[3].errors[0].message


async def test_tools_are_those_that_are_named(tmp_path: Path) -> None:
    said = definition(
        plain("x") + "\nallowed-tools: Bash(git add:*) Read WebFetch mcp__neo4j__read_cypher",
        "\nResearch in a vector database. Call `Github:create_issue`.\n",
    )
    found = Findings()
    tools = draft_tools(said, found)
    assert tools["local"] == ["simple_coder.run git", "simple_coder.read"]
    assert [(use["server"], use["tools"], use["required"]) for use in tools["mcp_servers"]] == [
        ("github", ["create_issue"], True),
        ("neo4j", ["read_cypher"], False),
    ]
    assert codes(found) == {"UNRESOLVED_TOOL"}
    found = Findings()
    long = definition(plain("x") + f"\nallowed-tools: mcp__{'a' * 65}__b")
    assert draft_tools(long, found)["mcp_servers"] == []
    assert codes(found) == {"UNRESOLVED_TOOL"}
    spec = spec_of(tools={"mcp_servers": [{"server": "up", "tools": ["echo", "gone"], "required": True}]})
    found = Findings()
    async with servers(tmp_path) as there:
        await check_tools(spec, there.lacks, found)
    assert [one.code for one in found.errors] == ["MCP_DOWN"]
    assert "gone" in found.errors[0].message


def spec_of(**more: Any) -> AgentSpec:
    return parse_spec({"id": "x", "name": "X", "type": "operator", "description": "y", **more})


async def test_any_name_stands_in_the_graph(tmp_path: Path) -> None:
    """Line 53."""
    name = 'Devil\'s "Advocate" \\n `$x` {y}'
    work, told = await drafted(
        skill(f"name: {name}\ndescription: 'Use when \"it''s too good\" is said'"), tmp_path
    )
    assert not any(one.errors for one in told), [str(one) for each in told for one in each.errors]
    assert work.spec.name == name
    row = choose((work.spec,), {}, Signal(triggers=("It's  TOO good",))).rows[0]
    assert row.id == work.spec.id


def test_an_agent_declares_edges() -> None:
    spec = spec_of(
        triggers={"keywords": ["look"], "problem_types": [{"type": "ill-defined"}]},
        chaining={"precedes": [{"id": "z", "weight": 0.9}], "follows": [{"id": "a"}]},
    )
    assert chains_of(spec) == {("x", "z"): 0.9, ("a", "x"): 0.5}


def test_triggers_are_declared_or_quoted_or_content_words() -> None:
    found = Findings()
    declared = definition(
        plain("x")
        + "\nmetadata:\n  mindrian-triggers: SCQA , structure\n  mindrian-problem-types: Ill_Defined:0.8"
    )
    graph = draft_graph(declared, found)
    assert graph["triggers"] == {
        "keywords": ["scqa", "structure"],
        "problem_types": [{"type": "ill-defined", "confidence": 0.8}],
    }
    quoted = definition(
        'name: my-review\ndescription: Reviews. Use when the user says "code review" or plans a merge.'
    )
    assert draft_graph(quoted, found)["triggers"]["keywords"] == [
        "code review",
        "review",
        "says",
        "code",
        "plans",
        "merge",
    ]
    assert not found.all
    wrong = definition(plain("x") + '\nmetadata:\n  mindrian-chains-to: "a:1.5, b:none, c"')
    assert draft_graph(wrong, found)["chaining"] == {"precedes": [{"id": "c", "weight": 0.5}]}
    assert [one.code for one in found.errors] == ["WEIGHT_RANGE", "WEIGHT_RANGE"]


@pytest.mark.parametrize("name", SKILLS)
async def test_the_files_of_an_agent_are_the_same_bytes_and_read_back(name: str, tmp_path: Path) -> None:
    """Lines 49 and 56."""
    data = SKILLS[name]["SKILL.md"]
    if name == "no-name":
        data = data.replace(b"---\n", b"---\nname: no-name\n", 1)
    made = []
    for _ in range(2):
        work, told = await drafted(data, tmp_path)
        assert not any(one.errors for one in told), [str(one) for each in told for one in each.errors]
        made.append(agent_files(work.spec, work.skill.body, work.folder))
    assert made[0] == made[1]
    files = made[0]
    assert files["instructions.md"] == work.skill.body
    assert data.endswith(files["instructions.md"])
    assert parse_spec(read_mapping(files["agent.yaml"].decode(), typed=True)[0]) == work.spec


ODD = st.recursive(
    st.sampled_from(
        ["", "x", "a:0.5, b:2, c:nan", "role", "1.10", "what", "mcp__a__b", "🦜", "a" * 300, 7, None]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["mindrian-type", "mindrian-chains-to", "mindrian-outputs", "from", "to", "weight", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = ["metadata", "allowed-tools", "license", "compatibility", "type", "version", "triggers"]


@given(st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=5), st.sampled_from(list(SKILLS.values())))
@settings(max_examples=rounds(50, full=150), deadline=None)
def test_odd_fields_build_or_end_in_a_phase_with_a_place(
    fields: dict[str, Any], files: dict[str, bytes]
) -> None:
    head = "".join(f"\n{key}: {json.dumps(value)}" for key, value in fields.items())
    parted = split_frontmatter(files["SKILL.md"], Findings())
    assert parted is not None
    body = parted.body.decode()
    with TemporaryDirectory() as place:
        work, told = asyncio.run(drafted(skill(plain("x") + head, body), Path(place)))
        errors = [one for found in told for one in found.errors]
        assert all(one.where for one in errors)
        if not errors:
            assert work.spec is not None
            assert work.skill is not None
            written = agent_files(work.spec, work.skill.body, work.folder)
            assert written["instructions.md"] == body.encode()


def test_yaml_says_what_it_was_given() -> None:
    odd = [
        "on",
        "1.10",
        "yes",
        "null",
        "~",
        "2024-01-01",
        "0x1f",
        "<<",
        "a: b",
        "- c",
        "# d",
        " e ",
        "",
        "é\u2028\x85🦜",
        "'",
        "\\n\n",
    ]
    given = {"texts": odd, "numbers": [1, 0.5, -2], "truths": [True, False, None], "deep": {"x": {"y": []}}}
    assert read_mapping(write_mapping(given), typed=True)[0] == given
    assert write_mapping({"b": 1, "a": 2}) == "a: 2\nb: 1\n"
