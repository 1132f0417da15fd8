"""Paths and components against a real workspace: corrected where one thing can be meant, beneath the root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.actions import Entry, ErrorCode, Stage, Survey
from engine.core.ports import CommandSpec, Parameter
from engine.sandbox.files import SandboxFiles
from engine.tools.parameters.paths import place, references, survey
from engine.tools.parameters.processing import (
    ParameterCall,
    ProcessedCall,
    ProcessingSettings,
    lookup_request,
    process,
)
from engine.tools.simple_coder_commands import COMMANDS

EVOLVE = CommandSpec(
    "evolve",
    "Audit a file and improve it.",
    (
        Parameter("target_path", "What to improve", kind="path", exists="file"),
        Parameter("prompt", "What to do with it", required=False, default=""),
    ),
)
"""The seed's `audit_and_improve`, as a tool of today would describe it."""
MANY = 300


class Workspace:
    """A sandbox root, and calls that are processed against it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = SandboxFiles(root)

    def put(self, *paths: str) -> None:
        for path in paths:
            target = self.root / path
            if path.endswith("/"):
                target.mkdir(parents=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("")

    def looked(self, call: ParameterCall) -> Survey:
        return survey(self.files, call.cwd, lookup_request(call))

    def processed(
        self,
        command: str | CommandSpec,
        goal: str = "",
        cwd: str = ".",
        settings: ProcessingSettings | None = None,
        /,
        **args: Any,
    ) -> ProcessedCall:
        spec = COMMANDS[command] if isinstance(command, str) else command
        call = ParameterCall(spec, args, goal, cwd, settings or ProcessingSettings())
        return process(call, self.looked(call))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    root = tmp_path / "root"
    root.mkdir()
    made = Workspace(root)
    yield made
    made.files.close()


@pytest.mark.parametrize(
    ("there", "given", "why"),
    [
        ("main.py", "Main.py", "case"),
        ("src/main.py", "SRC/Main.PY", "case"),
        ("main.py", "main", "extension"),
        ("notes.md", "notes.markdown", "extension"),
        ("README", "readme.md", "extension and case"),
        ("src/main.py", "src\\main.py", "separators"),
        ("my_file.py", "my-file.py", "separators"),
        ("my file.py", "My_File", "extension and separators and case"),
        ("grüße.txt", "GRÜSSE.TXT", "case"),
    ],
)
def test_a_file_that_differs_only_in_case_separators_or_extension_is_meant(
    workspace: Workspace, there: str, given: str, why: str
) -> None:
    workspace.put(there, "other.txt", "deep/else.py")
    outcome = workspace.processed("read", path=given)
    assert outcome.checked.args == {"path": there}
    assert outcome.checked.problems == ()
    (correction,) = outcome.corrections
    assert (correction.before, correction.after, correction.rule) == (given, there, "near path")
    assert correction.why.endswith(why)
    assert correction.words == f"path: {given!r} → {there!r} because {correction.why}"


def test_a_path_is_corrected_as_it_is_seen_from_the_working_directory(workspace: Workspace) -> None:
    workspace.put("app/src/main.py", "lib/Util.py")
    assert workspace.processed("read", "", "app/src", path="MAIN.py").checked.args["path"] == "main.py"
    outcome = workspace.processed("read", "", "app/src", path="../../lib/util.py")
    assert outcome.checked.args["path"] == "../../lib/Util.py"


def test_a_directory_is_meant_where_a_directory_must_be(workspace: Workspace) -> None:
    workspace.put("Project/", "project.toml")
    assert workspace.processed("cd", path="project").checked.args["path"] == "Project"
    assert workspace.processed("read", path="project").checked.args["path"] == "project.toml"


def test_what_is_there_is_never_changed_and_nothing_is_told(workspace: Workspace) -> None:
    workspace.put("main.py", "Main.py", "main")
    for path in ("main.py", "Main.py", "main", "./main.py", "."):
        outcome = workspace.processed("find", text="x", path=path)
        assert (outcome.checked.args["path"], outcome.corrections, outcome.telling) == (path, (), False)


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("write", {"path": "Main.py", "content": "x"}),
        ("append", {"path": "Main.py", "content": "x"}),
        ("mkdir", {"path": "SRC"}),
        ("move", {"source": "main.py", "target": "Main.py"}),
        ("rm", {"path": "Main.py"}),
    ],
)
def test_what_may_be_new_and_what_is_deleted_is_never_guessed(
    workspace: Workspace, command: str, args: dict[str, Any]
) -> None:
    workspace.put("main.py", "src/x.py")
    outcome = workspace.processed(command, **args)
    assert (outcome.checked.args, outcome.telling) == (args, False)


@pytest.mark.parametrize(
    ("there", "given", "readings"),
    [
        (("main.py", "MAIN.py"), "Main.py", "'MAIN.py' or 'main.py'"),
        (("config.json", "config.toml"), "config", "'config.json' or 'config.toml'"),
        (("my-file.py", "my_file.py"), "my file.py", "'my-file.py' or 'my_file.py'"),
        (("a/foo_tool.py", "b/foo_tool.py"), "foo_tool", "'a/foo_tool.py' or 'b/foo_tool.py'"),
        (tuple(f"d{n}/x_tool.py" for n in range(7)), "x_tool", "or 2 more"),
    ],
)
def test_what_can_mean_several_is_not_changed_and_the_problem_names_them(
    workspace: Workspace, there: tuple[str, ...], given: str, readings: str
) -> None:
    workspace.put(*there)
    outcome = workspace.processed("read", path=given)
    assert outcome.corrections == ()
    assert outcome.checked.args["path"] == given
    (problem,) = outcome.checked.problems
    assert problem.code is ErrorCode.NOT_FOUND
    assert readings in problem.message
    assert outcome.missing == ()


@pytest.mark.parametrize("given", ["elsewhere.py", "main.txt", "mian.py", "src/main.py/x", ".gitignore"])
def test_a_file_of_another_name_or_kind_is_another_file(workspace: Workspace, given: str) -> None:
    workspace.put("main.py", "src/main.py", ".git.py")
    outcome = workspace.processed("read", path=given)
    assert (outcome.corrections, outcome.checked.args["path"]) == ((), given)
    assert outcome.checked.problems == ()  # the tool itself says that it is not there


# ------------------------------------------------------------------ components


def test_the_seeds_own_example_finds_the_file_of_the_component(workspace: Workspace) -> None:
    """Seed: evolve the summarization tool: the real file, and by which rule. Behaviour 33."""
    workspace.put("tools/summarization_tool.py", "tools/base_gen_agent.py", "main.py")
    goal = "evolve the summarization tool"
    for args in ({"target_path": "summarization_tool"}, {"target_path": "the Summarization Tool"}, {}):
        outcome = workspace.processed(EVOLVE, goal, **args)
        assert outcome.checked.args == {"target_path": "tools/summarization_tool.py", "prompt": ""}
        (correction,) = outcome.corrections
        assert correction.rule == "component"
        record = next(one for one in outcome.stages if one.stage is Stage.COMPONENTS)
        assert record.went_out == {"summarization_tool": ["tools/summarization_tool.py"]}


def test_the_short_name_of_a_component_stands_for_it(workspace: Workspace) -> None:
    workspace.put("tools/summarization_tool.py", "docs/other.md")
    assert (
        workspace.processed("read", path="summarization").checked.args["path"]
        == "tools/summarization_tool.py"
    )


@pytest.mark.parametrize(
    ("goal", "named"),
    [
        ("improve foo_tool and note_taking_tool", ("foo_tool", "note_taking_tool")),
        ("evolve the summarization tool", ("summarization_tool",)),
        ("review the Base-Gen agent", ("base_gen_agent",)),
        ("improve the tool for summarization", ("summarization_tool",)),
        ("make the agent called tester", ("tester_agent",)),
        ("evolve the tool and every agent", ()),
        ("Enhance system-wide logging", ()),
        ("", ()),
    ],
)
def test_components_are_found_in_a_goals_words(goal: str, named: tuple[str, ...]) -> None:
    assert references(goal) == named


def test_both_components_of_a_goal_are_found_and_the_unknown_one_is_told(workspace: Workspace) -> None:
    """Behaviour 36."""
    workspace.put("tools/note_taking_tool.py")
    outcome = workspace.processed(EVOLVE, "improve foo_tool and note_taking_tool")
    record = next(one for one in outcome.stages if one.stage is Stage.COMPONENTS)
    assert record.came_in == {"names": ["foo_tool", "note_taking_tool"]}
    assert record.went_out == {"foo_tool": [], "note_taking_tool": ["tools/note_taking_tool.py"]}
    assert record.why == ("'foo_tool': nothing bears this name",)


def test_of_two_components_neither_is_taken_for_a_missing_path(workspace: Workspace) -> None:
    workspace.put("tools/a_tool.py", "tools/b_tool.py")
    outcome = workspace.processed(EVOLVE, "improve a_tool and b_tool")
    assert outcome.corrections == ()
    assert "'tools/a_tool.py' or 'tools/b_tool.py': say which" in outcome.checked.message
    assert outcome.missing == ()


def test_a_path_that_may_be_new_is_never_taken_from_a_component(workspace: Workspace) -> None:
    workspace.put("tools/a_tool.py")
    outcome = workspace.processed("write", "write about the a tool", content="x")
    assert [one.name for one in outcome.missing] == ["path"]


@pytest.mark.parametrize(
    "given", ["path/to/x.py", "./path/to/X.py", "/path/to/x.py", "path\\to\\x.py", "path/to/x"]
)
def test_a_placeholder_is_replaced_by_the_one_file_of_the_name(workspace: Workspace, given: str) -> None:
    """Behaviour 34."""
    workspace.put("lib/deep/x.py", "lib/y.py")
    outcome = workspace.processed("read", path=given)
    assert outcome.checked.args["path"] == "lib/deep/x.py"
    assert outcome.corrections[0].rule == "placeholder"


@pytest.mark.parametrize(
    ("command", "more"), [("write", {"content": "path/to/y"}), ("mkdir", {}), ("read", {})]
)
def test_a_placeholder_without_a_file_is_asked_about(
    workspace: Workspace, command: str, more: dict[str, str]
) -> None:
    """Behaviour 34."""
    outcome = workspace.processed(command, path="path/to/x.py", **more)
    assert "'path/to/x.py' stands in for a path: say which it is" in outcome.checked.message


def test_a_placeholder_that_the_goal_says_or_that_is_there_is_meant(workspace: Workspace) -> None:
    assert not workspace.processed("mkdir", "create the directory path/to/x", path="path/to/x").telling
    workspace.put("path/to/")
    assert not workspace.processed("write", path="path/to/x.py", content="").telling


# ------------------------------------------------------------------ bounds and hostile values


@pytest.mark.parametrize(
    "given",
    [
        *("../Secret.txt", "../../etc/PASSWD", "/etc/Passwd", "..\\secret.txt", "", " ", "a\0b", "~/x"),
        *("\ud800", "\x1b[31m", "x" * 5_000, "/".join("a" * 3_000), ".pilothouse/Journal.db", "$(main.py)"),
    ],
)
def test_what_leads_nowhere_or_out_of_the_root_is_left_to_the_tool(workspace: Workspace, given: str) -> None:
    workspace.put("secret.txt", "etc/passwd", "main.py")
    (workspace.root.parent / "secret.txt").write_text("")
    outcome = workspace.processed("read", path=given)
    assert (outcome.corrections, outcome.checked.args["path"]) == ((), given)


def test_links_build_folders_and_what_is_pilothouses_own_are_never_meant(workspace: Workspace) -> None:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "main.py").write_text("")
    os.symlink(outside, workspace.root / "link")
    os.symlink(outside / "main.py", workspace.root / "Main.py")
    workspace.put("__pycache__/main.py", "node_modules/main.py", ".home/main.py", ".pilothouse/main.py")
    outcome = workspace.processed("read", path="MAIN.PY")
    assert outcome.corrections == ()


def test_a_name_that_cannot_be_printed_is_corrected_to_what_stands_for_it(workspace: Workspace) -> None:
    (workspace.root / "Bad\x1bname.py").write_text("")
    outcome = workspace.processed("read", path="bad\\x1bname.py")
    assert outcome.checked.args["path"] == "Bad\\x1bname.py"
    assert workspace.files.entry(workspace.files.relative("Bad\\x1bname.py")) is not None


def test_in_a_workspace_too_large_to_search_nothing_is_certain() -> None:
    unsure = Survey(("path",), (Entry("main.py"),), whole=False)
    outcome = process(ParameterCall(COMMANDS["read"], {"path": "Main.py"}), unsure)
    assert outcome.corrections == ()
    record = next(one for one in outcome.stages if one.stage is Stage.CORRECTIONS)
    assert "too large to be sure" in record.why[0]


def test_of_too_many_like_names_only_some_are_kept(workspace: Workspace) -> None:
    workspace.put(*(f"d{n}/main.py" for n in range(MANY)))
    found = workspace.looked(ParameterCall(COMMANDS["read"], {"path": "Main"}))
    assert (len(found.entries), found.whole) == (100, False)


def test_nothing_is_searched_while_every_path_is_there(workspace: Workspace) -> None:
    workspace.put("main.py", "sub/main.py")
    assert (
        workspace.looked(ParameterCall(COMMANDS["read"], {"path": "main.py"}, "evolve the main tool"))
        == Survey()
    )


def test_with_path_correction_off_nothing_is_looked_up(workspace: Workspace) -> None:
    """Behaviour 38."""
    workspace.put("main.py")
    off = ProcessingSettings(enable_path_correction=False)
    assert not lookup_request(ParameterCall(COMMANDS["read"], {"path": "Main.py"}, settings=off))
    assert workspace.processed("read", "", ".", off, path="Main.py").corrections == ()


NAMES = st.text(st.sampled_from("aA_-. /\\x\0é\ud800"), max_size=10)


@given(
    NAMES, st.lists(st.builds(Entry, st.text("aA_-.x/", min_size=1, max_size=8), st.booleans()), max_size=6)
)
def test_whatever_was_found_a_correction_is_one_of_the_entries(given_path: str, entries: list[Entry]) -> None:
    call = ParameterCall(COMMANDS["read"], {"path": given_path}, "evolve the aa tool", "a")
    outcome = process(call, Survey(("path",), tuple(entries)))
    assert outcome == process(call, Survey(("path",), tuple(entries)))
    for correction in outcome.corrections:
        assert place("a", correction.after) in {
            place(".", entry.path) for entry in entries if not entry.directory
        }
