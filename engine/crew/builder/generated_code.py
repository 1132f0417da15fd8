"""Generates the files of an agent and tries them in the sandbox.

The files are the same bytes for the same input. What is tried is a copy, so that nothing that the tests do
can change what is registered: it is compiled, imported and tested, the suite has to pass, to have at least
five tests, and to fail when the agent has another id. Beside the code lies a Cypher script with its
parameters, by which the agent can be put into a Neo4j database.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.crew.builder import sandbox_trial as inside
from engine.crew.builder.agent_base import CLASSES
from engine.crew.builder.findings import CheckOutcome, Findings
from engine.crew.builder.registration import remove_tree, write_files
from engine.crew.builder.skill import SkillDefinition, class_name
from engine.crew.builder.skill_folder import SkillFolder
from engine.crew.builder.yaml_text import YamlError, read_mapping, write_mapping
from engine.crew.ontology.spec import AgentSpec
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.selection import Rel, edges_of, node_of
from engine.sandbox.completion import run_to_completion
from engine.sandbox.jail import Launch
from engine.sandbox.policy import MIB, Network, SandboxPolicy
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.sandbox.tier import JailRefusal, best_jail

LIMIT_S = 60.0
MEMORY_BYTES = 512 * MIB
LEAST_ROOM = 64 * 1024
LEAST_TESTS = 5
MUTANT_ID = "mutant-of-nobody"
_ENGINE = Path(__file__).resolve().parents[2]
_ID = re.compile(rb"^id: .*$", re.M)


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What trying a folder came to."""

    compiles: CheckOutcome
    tests_pass: CheckOutcome
    output: str = ""
    """The last 100 lines of a run that failed."""


async def trial_files(
    files: Mapping[str, bytes], place: Path, policy: SandboxPolicy, findings: Findings
) -> TrialResult:
    """Compile, import and test an agent's files in the sandbox.

    Args:
        files: the agent's files by path.
        place: a directory of ours, in which a copy is made and taken away.
        policy: the workspace's; here it is tightened.
        findings: receives every finding.

    Raises:
        asyncio.CancelledError: every process has ended and the copy is gone.
        OSError: the copy could not be written.
    """
    for path, data in files.items():
        if path.endswith(".py") and not path.startswith("skill/") and not _compiles(path, data, findings):
            return _result(f"{path} is no Python")
    packages, missing = _packages()
    if missing:
        findings.error("NO_PYTEST", f"{', '.join(missing)} is not installed", hint="pip install pytest")
        return _result("not tried")
    policy = _tightened(policy, packages)
    jail = await asyncio.to_thread(best_jail, policy)
    if isinstance(jail, JailRefusal):
        findings.error("NO_JAIL", jail.message, hint="pilothouse doctor says what is missing")
        return _result("not tried")
    root = Path(tempfile.mkdtemp(prefix="try-", dir=place))
    try:
        job = await run_to_completion(asyncio.to_thread(_laid, files, root, policy))
        job |= {"engine": str(_ENGINE), "packages": list(packages)}
        result = await _run(root, job, policy, jail)
        room = (await asyncio.to_thread(shutil.disk_usage, root)).free
    finally:
        await run_to_completion(asyncio.to_thread(remove_tree, root))
    tried = _judged(result, findings)
    if findings.errors and room < LEAST_ROOM:
        findings.error(
            "DISK_FULL", "there was no room left to try it", str(place), "make room, and build again"
        )
    return tried


def _compiles(path: str, data: bytes, findings: Findings) -> bool:
    try:
        compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        findings.error("NOT_PYTHON", str(error), f"{path}:{line}")
        return False
    return True


def _packages() -> tuple[tuple[str, ...], list[str]]:
    """Where the packages lie that the tests need, and which are not there."""
    places, missing = set(), []
    for name in ("pytest", "pydantic", "yaml"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            missing.append(name)
        else:
            places.add(str(Path(spec.origin).resolve().parent.parent))
    return tuple(sorted(places)), missing


def _tightened(policy: SandboxPolicy, packages: tuple[str, ...]) -> SandboxPolicy:
    return replace(
        policy,
        memory_bytes=min(policy.memory_bytes, MEMORY_BYTES),
        wall_clock_s=LIMIT_S,
        cpu_s=min(policy.cpu_s, int(LIMIT_S)),
        processes=min(policy.processes, 32),
        network=Network.OFF,
        grace_s=min(policy.grace_s, 0.1),
        read_only=(str(_ENGINE), *packages),
    )


def _laid(files: Mapping[str, bytes], root: Path, policy: SandboxPolicy) -> dict[str, Any]:
    """The copy and its mutant, whose agent.yaml has another id."""
    write_files(root / "agent", files)
    for name in (policy.home, policy.tmp):
        (root / name).mkdir(mode=0o700)
    mutated, times = _ID.subn(b"id: " + MUTANT_ID.encode(), files.get("agent.yaml", b""))
    if times:
        write_files(root / "mutant", {**files, "agent.yaml": mutated})
    (root / "inside.py").write_bytes(Path(inside.__file__).read_bytes())
    return {
        "folder": str(root / "agent"),
        "mutant": str(root / "mutant") if times else "",
        "log": str(root / "log"),
    }


async def _run(root: Path, job: Mapping[str, Any], policy: SandboxPolicy, jail: Any) -> ProcessResult:
    words = (str(BASE_PYTHON), "-s", "-S", "-B", "-P", str(root / "inside.py"), json.dumps(job))
    env = child_environment(root, policy, None)
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    cwd = os.open(root / "agent", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await Launcher(root, policy).run(
            Launch(words[0], words, env), cwd, jail=jail, limit_s=LIMIT_S, output=lambda _stream, _text: None
        )
    finally:
        os.close(cwd)


def _judged(result: ProcessResult, findings: Findings) -> TrialResult:
    try:
        answer = json.loads(result.stdout.rpartition("\n")[2])
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or result.ended is not Ended.EXIT:
        why = f"{result.ended} {result.problem}".strip()
        findings.error("NOT_TRIED", f"the sandbox gave no answer: {why}", hint=result.stderr[-300:])
        return _result(why, why, result.stderr)
    imported, tests, mutant = answer["imported"], answer.get("tests", {}), answer.get("mutant")
    if not imported["ok"]:
        hint = imported["output"][-300:]
        findings.error("NOT_IMPORTED", "the generated code cannot be imported", hint=hint)
        return _result("import fails", output=imported["output"])
    count, output = tests.get("passed", 0), str(tests.get("output", ""))
    ended = tests.get("code", tests.get("ended"))
    measured = f"{count} passed, {tests.get('failed', 0)} failed, exit {ended}"
    passed = False
    if tests.get("code") == 5:
        findings.error("NO_TESTS", "there are no tests", "tests", _last_words(output))
    elif tests.get("code") != 0:
        findings.error("TESTS_FAIL", f"the tests fail: {measured}", "tests", _last_words(output))
    elif count < LEAST_TESTS:
        findings.error("FEW_TESTS", f"{count} tests ran; {LEAST_TESTS} is the least", "tests")
    elif not mutant or mutant.get("code") == 0 or not mutant.get("failed"):
        findings.error("MUTANT_LIVES", "the tests do not notice when the agent has another id", "tests")
        measured = "the mutant passes"
    else:
        passed, measured, output = True, f"{measured}; the mutant fails", ""
    return TrialResult(
        CheckOutcome("compiles", True, f"imported in the sandbox, tier {result.tier}"),
        CheckOutcome("tests_pass", passed, measured),
        output,
    )


def _last_words(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith(("E  ", "FAILED", "ERROR"))]
    return "; ".join(lines[-3:])


def _result(compiles: str, tests: str = "not run", output: str = "") -> TrialResult:
    """What was not imported."""
    return TrialResult(
        CheckOutcome("compiles", False, compiles), CheckOutcome("tests_pass", False, tests), output
    )


SCHEMA_CYPHER = """\
CREATE CONSTRAINT framework_id IF NOT EXISTS FOR (f:Framework) REQUIRE f.id IS UNIQUE;

CREATE CONSTRAINT problem_type_name IF NOT EXISTS FOR (t:ProblemType) REQUIRE t.name IS UNIQUE;

CREATE CONSTRAINT session_id IF NOT EXISTS FOR (s:Session) REQUIRE s.id IS UNIQUE;

MERGE (f:Framework {id: $node.id})
SET f.name = $node.name, f.type = $node.type, f.triggers = $node.triggers,
    f.problem_types = $node.problem_types, f.version = $node.version, f.updated_at = $node.updated_at,
    f.description = $node.description, f.enabled = $node.enabled, f.callers = $node.callers;

UNWIND $chains AS chain
MERGE (a:Framework {id: chain.src})
MERGE (b:Framework {id: chain.dst})
MERGE (a)-[r:CHAINS_TO]->(b) SET r.weight = chain.weight;

UNWIND $good_for AS good
MERGE (a:Framework {id: good.src})
MERGE (b:ProblemType {name: good.dst})
MERGE (a)-[r:GOOD_FOR]->(b) SET r.confidence = good.confidence;

"""
"""Puts one agent with its edges into Neo4j, with `schema_parameters`; running it again changes nothing."""


def schema_parameters(spec: AgentSpec) -> dict[str, Any]:
    """The parameters of `SCHEMA_CYPHER` for one agent: its node, chains in both directions, what it suits."""
    edges = sorted(edges_of(spec))

    def rows(rel: Rel, name: str) -> list[dict[str, Any]]:
        return [{"src": edge.src, "dst": edge.dst, name: edge.value} for edge in edges if edge.rel == rel]

    node = asdict(node_of(spec)) | {"updated_at": ""}
    return {"node": node, "chains": rows("CHAINS_TO", "weight"), "good_for": rows("GOOD_FOR", "confidence")}


# Texts of generated code: nothing of a skill stands in them. Marks are `@ID@`, `@TYPE@`, `@CLASS@`, `@BASE@`.
AGENT = '''\
"""The agent @ID@. Generated: what it is stands in agent.yaml, what it is told in instructions.md."""

from __future__ import annotations

from pathlib import Path

from engine.crew.builder.agent_base import @BASE@


class @CLASS@(@BASE@):
    """Loads its folder; its work is that of its type."""

    def __init__(self, folder: Path | str = Path(__file__).parent) -> None:
        super().__init__(Path(folder))


AGENT = @CLASS@
'''

TOOLS = '''\
"""Custom tools of the agent @ID@, by name. Generated: they are imported and called in the sandbox only."""

from __future__ import annotations

FUNCTIONS = {
@FUNCTIONS@
}
'''

TEST_AGENT = '''\
"""What the agent @ID@ is. Generated by the builder, which runs it in the sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.ontology.spec import AgentSpec
from engine.crew.builder.agent_base import load_agent
from engine.crew.builder.yaml_text import body_of
from engine.crew.builder.yaml_text import read_mapping

FOLDER = Path(__file__).resolve().parent.parent


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def agent():
    return load_agent(FOLDER)


def test_it_loads_as_what_it_is(agent) -> None:
    assert (agent.spec.id, agent.spec.type.value) == ("@ID@", "@TYPE@")
    assert type(agent).__name__ == "@CLASS@"


def test_its_spec_is_what_agent_yaml_says(agent) -> None:
    assert parse_spec(read_mapping(text("agent.yaml"), typed=True)[0]) == agent.spec
    assert AgentSpec.model_validate_json(agent.spec.model_dump_json(by_alias=True)) == agent.spec


def test_its_instructions_are_the_body_of_the_skill_byte_for_byte(agent) -> None:
    skill = next(path for name in ("SKILL.md", "skill.md") if (path := FOLDER / "skill" / name).is_file())
    assert (FOLDER / "instructions.md").read_bytes() == body_of(skill.read_bytes())
    assert agent.instructions.encode() == body_of(skill.read_bytes())


def test_its_graph_rows_are_its_own_and_stand_in_parameters_only(agent) -> None:
    graph, schema = json.loads(text("graph.json")), text("schema.cypher")
    assert (graph["node"]["id"], graph["node"]["name"]) == ("@ID@", agent.spec.name)
    assert all("@ID@" in (edge["src"], edge["dst"]) for edge in (*graph["chains"], *graph["good_for"]))
    assert "$node" in schema
    assert json.dumps(agent.spec.name) not in schema
'''

TEST_HANDOFF = '''\
"""How the agent @ID@ takes and answers handoffs. Generated by the builder, which runs it in the sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from engine.crew.ontology.context import HandoffContext
from engine.crew.ontology.results import HandoffResult
from engine.crew.builder.agent_base import load_agent

FOLDER = Path(__file__).resolve().parent.parent
CLEAR = {
    "what": "Support answers tickets four hours late",
    "who": "Shops with fewer than ten agents",
    "success": "Every ticket is answered within one hour",
    "confirmed": ["what", "who", "success"],
    "what_clarity": 1.0,
    "who_clarity": 1.0,
    "success_clarity": 1.0,
}


@pytest.fixture(scope="module")
def agent():
    return load_agent(FOLDER)


def answer(context, **changes):
    given = {
        "handoff_id": context.handoff_id,
        "from_agent": context.to_agent,
        "to_agent": context.return_to,
        "success": True,
        "output": "An answer.",
    }
    return HandoffResult.read(given | changes)


def worked(agent, context, **changes):
    async def worker(given, _agent):
        return answer(given, **changes)

    return asyncio.run(agent.process_handoff(context, worker))


def test_a_context_goes_to_it_and_survives_json(agent) -> None:
    context = agent.create_handoff_context("Look into it", CLEAR)
    assert (context.to_agent, context.from_agent, context.return_to) == ("@ID@", "user", "user")
    assert HandoffContext.model_validate_json(context.model_dump_json()) == context


def test_it_admits_a_clear_problem_and_refuses_what_it_needs_and_is_not_said(agent) -> None:
    assert agent.refusal(agent.create_handoff_context("Look into it", CLEAR)) == ""
    refused = agent.refusal(agent.create_handoff_context("Look into it"))
    assert bool(refused) == bool(agent.spec.handoff.receives.required)


def test_a_worker_that_fails_is_a_result_without_success(agent) -> None:
    async def worker(_given, _agent):
        raise RuntimeError("the model is not there")

    result = asyncio.run(agent.process_handoff(agent.create_handoff_context("Look into it", CLEAR), worker))
    assert (result.success, result.from_agent, result.error) == (False, "@ID@", "the model is not there")


def test_an_answer_of_somebody_else_is_refused(agent) -> None:
    context = agent.create_handoff_context("Look into it", CLEAR)
    assert not worked(agent, context, from_agent="somebody-else").success


def test_a_scripted_worker_gives_a_valid_result(agent) -> None:
    context = agent.create_handoff_context("Look into it", CLEAR)
    result = worked(agent, context)
    assert (result.handoff_id, result.from_agent) == (context.handoff_id, "@ID@")
    assert HandoffResult.model_validate_json(result.model_dump_json()) == result
    gated = any(one.hard for one in agent.spec.instructions.quality_criteria)
    assert result.success or (gated and result.error_code == "QUALITY_GATE")
'''

SKILL = "skill"
"""Directory of the agent's folder that holds the skill as it was, read-only."""


def spec_text(spec: AgentSpec) -> str:
    """agent.yaml of a spec; what is as usual for everybody is left out."""
    return write_mapping(_plain(spec))


def _plain(spec: AgentSpec) -> dict[str, Any]:
    fields: dict[str, Any] = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    # Defaults differ by type, so the parts in which they do are said in full.
    fields["type"] = spec.type.value
    fields["version"] = spec.version
    fields["handoff"] = spec.handoff.model_dump(mode="json", by_alias=True)
    fields["model"] = spec.model.model_dump(mode="json")
    return fields


def spec_sha256(spec: AgentSpec) -> str:
    """SHA-256 of agent.yaml."""
    return hashlib.sha256(spec_text(spec).encode()).hexdigest()


def generate(
    spec: AgentSpec, skill: SkillDefinition, folder: SkillFolder, findings: Findings
) -> dict[str, bytes]:
    """Every file of the agent's folder but BUILD.json, by path; none where one cannot be made."""
    yaml = spec_text(spec)
    try:
        same = parse_spec(read_mapping(yaml, typed=True)[0]) == spec
    except (YamlError, ValueError):
        same = False
    if not same:
        findings.error("BAD_SPEC", "agent.yaml would not say what the spec says", "agent.yaml")
        return {}
    graph = schema_parameters(spec)
    files = {
        "agent.yaml": yaml,
        "agent.py": _filled(AGENT, spec),
        "schema.cypher": SCHEMA_CYPHER,
        "graph.json": json.dumps(graph, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
        "tests/test_agent.py": _filled(TEST_AGENT, spec),
        "tests/test_handoff.py": _filled(TEST_HANDOFF, spec),
    }
    if spec.tools.custom_tools:
        rows = sorted((tool.name, tool.function) for tool in spec.tools.custom_tools)
        lines = "\n".join(f"    {json.dumps(name)}: {json.dumps(function)}," for name, function in rows)
        files["tools.py"] = _filled(TOOLS, spec).replace("@FUNCTIONS@", lines)
    written = {path: text.encode() for path, text in files.items()}
    written["instructions.md"] = skill.body
    written |= {f"{SKILL}/{path}": data for path, data in folder.files.items()}
    return dict(sorted(written.items()))


def _filled(template: str, spec: AgentSpec) -> str:
    for mark, value in (
        ("@ID@", spec.id),
        ("@TYPE@", spec.type.value),
        ("@CLASS@", class_name(spec.id)),
        ("@BASE@", CLASSES[spec.type].__name__),
    ):
        template = template.replace(mark, value)
    return template
