"""Names and types of arguments: put right where they can mean one thing only (seed parameter processing)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.settings import SettingsError, read_settings
from engine.core.actions import Stage, Survey
from engine.core.ports import CommandSpec, Parameter
from engine.tools.parameters.processing import (
    ParameterCall,
    ProcessedCall,
    ProcessingSettings,
    named_right,
    process,
    typed_right,
    uncorrectable_problems,
)
from engine.tools.registry import check_arguments, fits
from engine.tools.simple_coder_commands import COMMANDS

SPEC = CommandSpec(
    "measure",
    "Measure something.",
    (
        Parameter("count", "How many", type="integer", required=False, default=3),
        Parameter("ratio", "How much", type="number", required=False, default=0.5),
        Parameter("deep", "How deep", type="boolean", required=False, default=False),
        Parameter("names", "Which", type="array", required=False),
        Parameter("limits", "Up to where", type="object", required=False),
        Parameter("note", "Words", required=False, default=""),
        Parameter("anything", "Whatever", type="any", required=False),
        Parameter("command", "A program", kind="shell", required=False),
    ),
)


def processed(
    spec: CommandSpec = SPEC, /, settings: dict[str, bool] | None = None, **args: Any
) -> ProcessedCall:
    return process(ParameterCall(spec, args, settings=ProcessingSettings(**(settings or {}))), Survey())


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("count", "20", 20),
        ("count", " -7 ", -7),
        ("count", 20.0, 20),
        ("ratio", "1.5", 1.5),
        ("ratio", "2e3", 2000.0),
        ("ratio", "20", 20),
        ("deep", "true", True),
        ("deep", "False", False),
        ("names", '["a", "b"]', ["a", "b"]),
        ("names", "[]", []),
        ("limits", '{"a": 1}', {"a": 1}),
        ("command", '["python", "main.py"]', ["python", "main.py"]),
    ],
)
def test_what_spells_one_value_of_the_right_type_becomes_it(name: str, given: Any, meant: Any) -> None:
    outcome = processed(**{name: given})
    assert outcome.checked.problems == ()
    assert outcome.checked.args[name] == meant
    assert type(outcome.checked.args[name]) is type(meant)
    (correction,) = outcome.corrections
    assert (correction.argument, correction.before, correction.after) == (name, given, meant)
    assert f"{name} is " in correction.why


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *[
            ("count", one)
            for one in ("twenty", "2O", "1.5", "٣", "0x10", "1_000", "", 1.5, 1e300, "9" * 400, True)
        ],
        *[("ratio", one) for one in ("nan", "inf", "1e999", "1,5", "", False, "1e400")],
        *[("deep", one) for one in ("yes", "1", 1, 0, "", "truee", None)],
        *[("names", one) for one in ("a, b", "[1, 2", "[NaN]", '{"a": 1}', "[" * 200 + "]" * 200)],
        *[("limits", one) for one in ('{"a": 1, "a": 2}', "{", "[]", 5)],
    ],
)
def test_what_may_mean_several_things_or_nothing_stays_as_it_is(name: str, given: Any) -> None:
    outcome = processed(**{name: given})
    assert outcome.corrections == ()
    assert outcome.checked.args[name] == given or given is None
    assert bool(outcome.checked.problems) == (given is not None)


@pytest.mark.parametrize("text", ["20", "true", "[1]", '{"a": 1}', "path/to/x.py", "Main.PY", " "])
@pytest.mark.parametrize("name", ["note", "anything"])
def test_texts_and_free_values_are_never_touched(name: str, text: str) -> None:
    outcome = processed(**{name: text})
    assert outcome.checked.args[name] == text
    assert outcome.corrections == ()
    assert not outcome.telling


def test_the_content_of_a_file_is_never_touched() -> None:
    """Behaviour 35."""
    for content in ("path/to/x.py", "20", "true", "summarization_tool"):
        outcome = process(
            ParameterCall(COMMANDS["write"], {"path": "a", "content": content}, "improve it"), Survey()
        )
        assert outcome.checked.args == {"path": "a", "content": content}


@pytest.mark.parametrize(
    ("command", "given", "meant"),
    [
        ("read", "pth", "path"),
        ("read", "Path", "path"),
        ("read", "file_path", "path"),
        ("write", "contnet", "content"),
        ("create_venv", "venv-name", "venv_name"),
        ("replace", "new_text", "new"),
        ("move", "source_path", "source"),
    ],
)
def test_a_misspelt_name_is_put_right(command: str, given: str, meant: str) -> None:
    args, corrections, problems = named_right(COMMANDS[command], {given: "x"})
    assert args == {meant: "x"}
    assert problems == []
    assert [(one.argument, one.rule) for one in corrections] == [(meant, "key")]


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("mkdir", {"folder": "x"}),  # nothing like it
        ("read", {"path": "a", "pth": "b"}),  # taken already
        ("read", {"pth": "a", "paths": "b"}),  # two for one
        ("read", {"p" * 1_000_000: "a"}),
        ("jobs", {"job": "j1"}),
        ("read", {f"path{n}": "a" for n in range(5_000)}),
        ("read", {"": "a"}),
        ("read", {"\ud800": "a"}),
    ],
)
def test_a_name_that_is_nobodys_stays_and_is_refused(command: str, given: dict[str, Any]) -> None:
    args, corrections, _ = named_right(COMMANDS[command], given)
    assert args == given
    assert corrections == []
    assert check_arguments(COMMANDS[command], args).problems


def test_a_name_that_can_mean_two_is_a_problem_with_both_readings() -> None:
    outcome = process(ParameterCall(COMMANDS["move"], {"source_target": "a"}), Survey())
    assert outcome.corrections == ()
    assert "'source_target' can mean 'source' or 'target': say which" in outcome.checked.message


def test_defaults_are_filled_in_and_named() -> None:
    outcome = processed(note="x", count="4")
    assert outcome.checked.args["ratio"] == 0.5
    defaults = next(one for one in outcome.stages if one.stage is Stage.DEFAULTS)
    assert defaults.went_out == {"ratio": 0.5, "deep": False}


def test_every_stage_has_its_record_in_order() -> None:
    """Behaviour 39."""
    assert [one.stage for one in processed(count="4").stages] == list(Stage)


def test_without_defaults_what_was_left_out_is_missing_and_the_stage_says_so() -> None:
    """Behaviour 38."""
    outcome = processed(settings={"fallback_to_defaults": False}, note="x", count="1")
    assert [one.name for one in outcome.missing] == ["ratio", "deep"]
    assert "measure needs 'ratio' (a number), as defaults are switched off" in outcome.checked.message
    assert [one.stage for one in outcome.stages if one.skipped] == [Stage.DEFAULTS]


@pytest.mark.parametrize(
    ("switch", "stages"),
    [("enable_path_correction", [Stage.COMPONENTS, Stage.PATHS]), ("use_llm_extraction", [Stage.EXTRACTION])],
)
def test_a_stage_that_is_off_is_skipped_and_says_so(switch: str, stages: list[Stage]) -> None:
    """Behaviour 38."""
    outcome = processed(settings={switch: False}, count="1")
    skipped = [one for one in outcome.stages if one.skipped]
    assert [one.stage for one in skipped] == stages
    assert all("switched off" in one.why[0] for one in skipped)


@pytest.mark.parametrize("wrong", [{"speed": True}, {"use_llm_extraction": "yes"}, [], "on", 1])
def test_settings_that_are_none_are_refused_by_name(wrong: Any) -> None:
    with pytest.raises(SettingsError, match="parameter_processing"):
        read_settings({"parameter_processing": wrong})


def test_a_plan_may_leave_open_what_processing_settles_and_nothing_else() -> None:
    assert uncorrectable_problems(COMMANDS["job_output"], {"lines": "50"}) == ()
    assert (
        uncorrectable_problems(COMMANDS["write"], {"pth": "a"}) == ()
    )  # the content is missing, and may be found
    (problem,) = uncorrectable_problems(COMMANDS["mkdir"], {"path": "a", "folder": "b"})
    assert "has no argument 'folder'" in problem.message
    (problem,) = uncorrectable_problems(COMMANDS["read"], {"path": 5})
    assert "must be a string" in problem.message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["count", "Count", "deep", "names", "command", "note", "x"]), VALUES))
def test_whatever_is_given_a_correction_fits_its_parameter_and_nothing_else_changes(
    args: dict[str, Any],
) -> None:
    known = {parameter.name: parameter for parameter in SPEC.parameters}
    out, corrections = typed_right(SPEC, args)
    changed = {one.argument for one in corrections}
    for name in changed:
        assert fits(known[name], out[name])
    assert {name: value for name, value in out.items() if name not in changed} == {
        name: value for name, value in args.items() if name not in changed
    }
    outcome = processed(**args)
    assert outcome == processed(**args)
    json.dumps(outcome.checked.args)
