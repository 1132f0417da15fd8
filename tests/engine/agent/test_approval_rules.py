"""Rules and policies of approvals: read, written, matched; what is wrong with them is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent.steering.envelopes import (
    envelope_of,
    envelope_text,
    given_envelope,
    leaves,
    make_call,
    path_of,
    propose,
)
from engine.agent.steering.gate import gate_verdict
from engine.agent.steering.rules import (
    PRESETS,
    RuleError,
    fits,
    fits_path,
    join_patterns,
    literal,
    narrowest_rule,
    read_policy,
    read_rule,
    rule_matches,
    rule_text,
    split_patterns,
    words_of,
)
from engine.core.approvals import Answer, Approvals, Envelope, Grant, Policy, Rule, Scope
from engine.core.state import AgentState
from engine.tools.simple_coder_commands import COMMANDS

NASTY = st.text(alphabet=st.sampled_from("ab/.*?[]!^-\\ '\"|,=é\x1b\u202e"), min_size=1, max_size=12)


def call(command: str, /, cwd: str = ".", **args: Any) -> Any:
    return make_call(COMMANDS[command], "simple_coder", args, cwd=cwd)


@given(NASTY)
def test_a_literal_pattern_fits_its_text_and_a_pattern_never_breaks(text: str) -> None:
    assert fits(literal(text), text)
    assert not fits(literal(text), text + "x")
    assert fits(text, "b") in (True, False)
    assert fits_path(text, "b/c") in (True, False)
    patterns = [literal(text), literal(text + "|,")]
    again = split_patterns(join_patterns(patterns, "|"), "|")
    assert fits(again[0], text)
    assert fits(again[1], text + "|,")


@given(NASTY, NASTY)
def test_the_offered_rule_covers_its_call_also_when_it_is_written_and_read(path: str, content: str) -> None:
    for asked in (call("write", path=path, content=content), call("run", command=["cat", path, content])):
        rule = narrowest_rule(asked)
        assert rule_matches(rule, asked)
        again = read_rule(rule_text(rule))
        assert rule_matches(again, asked)
        assert not rule_matches(again, call("write", path=f"{path}x/y", content=content))
        assert words_of(again).isprintable()


@pytest.mark.parametrize(
    ("pattern", "path", "fit"),
    [
        ("src/**", "src", True),
        ("src/**", "src/a/b.py", True),
        ("src/**", "srcs/a", False),
        ("src/*", "src/a/b.py", False),
        ("**/*.py", "a/b.py", True),
        ("**", "outside:../x", False),
        ("[!a]*", "b", True),
        ("[!a]*", "a", False),
    ],
)
def test_globs_of_paths(pattern: str, path: str, fit: bool) -> None:
    assert fits_path(pattern, path) is fit


def test_a_path_is_what_it_leads_to_by_its_words() -> None:
    assert path_of("a/./b/../c", "x") == "x/a/c"
    assert path_of("..", "x") == "."
    assert path_of("../../up", "x").startswith("outside:")
    assert path_of("/etc/passwd", ".").startswith("outside:")
    assert path_of("\\xc3\\xa9", ".") == path_of("é", ".")


def test_rules_that_ask_and_deny_are_strict_about_paths_and_allowing_ones_too() -> None:
    move = call("move", source="src/a", target="secret/a")
    assert not rule_matches(Rule(Answer.ALLOW, command="move", paths=("src/**",)), move)
    assert rule_matches(Rule(Answer.DENY, command="move", paths=("secret/**",)), move)
    assert rule_matches(Rule(Answer.DENY, paths=("secret/**",)), call("write", path="../x", content=""))


def test_a_program_is_the_same_line_however_it_was_given() -> None:
    rule = read_rule("run command='git push *'")
    assert rule_matches(rule, call("run", command="git  push origin"))
    assert rule_matches(rule, call("run", command=["git", "push", "origin"]))
    assert call("run", command="python -m pip install x").hosts == ("?",)
    assert call("run", command="git clone https://a.example/r.git").hosts == ("a.example",)
    assert call("run", command="git status").hosts == ()


def test_always_is_honoured_every_time() -> None:
    """T15: 1,000 of 1,000, and never for what it does not cover."""
    grant = Grant("r1", read_rule("write paths=src/**"), Scope.ALWAYS)
    known = Approvals(policies={"workspace": PRESETS["ask"]}, grants=(grant,))
    state = AgentState(approvals=known)
    inside = (call("write", path=f"src/d{n % 7}/f{n}.py", content=str(n)) for n in range(1_000))
    outside = (call("write", path=f"doc/f{n}.py", content=str(n)) for n in range(1_000))
    assert {gate_verdict(state, one).answer for one in inside} == {Answer.ALLOW}
    assert {gate_verdict(state, one).answer for one in outside} == {Answer.ASK}


@given(st.lists(NASTY, max_size=3), st.lists(NASTY, max_size=3), st.none() | st.floats(0, 10))
def test_an_envelope_is_written_and_read_again(
    paths: list[str], programs: list[str], spend: float | None
) -> None:
    envelope = Envelope(
        "g1", ("*",), tuple(map(literal, paths)), tuple(map(literal, programs)), spend_usd=spend
    )
    if any(path.startswith("/") or ".." in path.split("/") for path in envelope.paths):
        return
    again = envelope_of(given_envelope(envelope_text(envelope), Envelope("g1")), Envelope("g1"))
    for path in paths:
        asked = make_call(COMMANDS["mkdir"], "simple_coder", {"path": path}, goal="g1")
        assert bool(leaves(envelope, asked)) == bool(leaves(again, asked))


@pytest.mark.parametrize(
    ("given_policy", "words"),
    [
        ({"preset": "loose"}, "there is no preset 'loose'; presets: allow"),
        ({"rule": []}, "there is no 'rule'; it has: preset, default, rules"),
        ({"rules": [{"command": "rm", "answer": "maybe"}]}, "rule 1: answer is allow, ask, deny, not"),
        ({"rules": [{"command": "rm"}, {"answer": "deny"}]}, "rule 2: it says of no call"),
        ({"rules": [{"comand": "rm"}]}, "rule 1: there is no 'comand'; a rule has:"),
        ({"rules": [{"paths": ["/etc/**"]}]}, "rule 1: paths are globs beneath the sandbox root"),
        ({"rules": [{"command": "rm", "network": "off"}]}, "rule 1: network is true or false"),
        ({"rules": [{"command": "rm", "cost_over": -1}]}, "rule 1: cost_over is an amount"),
        (["ask"], "a preset (allow, ask-irreversible"),
    ],
    ids=str,
)
def test_a_policy_that_is_wrong_is_said_by_its_rule(given_policy: object, words: str) -> None:
    with pytest.raises(RuleError) as error:
        read_policy(given_policy)
    assert words in str(error.value)


WRONG = ["", "paths=a", "write docs", "write paths=/etc", "write 'x", "write network=maybe"]


@pytest.mark.parametrize("text", WRONG)
def test_a_line_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        read_rule(text)


def test_rules_of_a_table_come_before_those_of_its_preset() -> None:
    policy = read_policy({"preset": "ask-changes", "rules": [{"answer": "allow", "command": "mkdir"}]})
    assert policy == Policy((Rule(Answer.ALLOW, command="mkdir"), *PRESETS["ask-changes"].rules))


def test_an_empty_plan_has_an_empty_envelope() -> None:
    assert propose("g1", (), lambda _tool, _command: None) == Envelope("g1")
