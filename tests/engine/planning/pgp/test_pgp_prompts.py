"""The prompts for the explorer in their three variants (spec BDI §2.6; §7 48, 49, 51, 54).

The golden files are written anew with `python -m pytest tests/engine/planning/pgp/test_pgp_prompts.py` after
deleting them; look at the difference before you keep it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from explorer_case import GOAL, KNOWN, context, listing

from engine.bdi.parser import parse_literal, parse_plan, parse_program, parse_trigger
from engine.planning.pgp import prompts as formatters
from engine.planning.pgp.answer_parser import with_inventions
from engine.planning.pgp.documentation import ActionSpec, Meaning, documentation_of
from engine.planning.pgp.procedure import meta_plan, missing_plan_belief
from engine.planning.pgp.prompts import (
    GenerationContext,
    PromptVariant,
    shown_context,
    system_prompt,
    user_prompt,
)

GOLDEN = Path(__file__).parent / "golden"
TITLES = [
    "# User Message",
    "## Agent's internal state",
    "### Beliefs",
    "#### Admissible beliefs",
    "#### Actual beliefs",
    "### Goals",
    "#### Admissible goals",
    "#### Actual goals",
    "### Admissible actions",
    "### Remarks",
    "## Expected outcome",
]


def prompt(variant: PromptVariant, seen: GenerationContext | None = None) -> str:
    return user_prompt(shown_context(seen or context(), ("print",)), variant)


def golden(name: str, text: str) -> str:
    path = GOLDEN / f"{name}.md"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path.name} was written: look at it")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("variant", PromptVariant)
def test_the_explorers_prompt_is_as_kept(variant: PromptVariant) -> None:
    text = prompt(variant)
    assert text == golden(f"explorer-{variant}", text)


def test_the_system_prompt_is_as_kept() -> None:
    text = system_prompt()
    assert text == golden("system", text)
    for said in ("achieve", "execute", "test", "add", "remove", "update", "<none>", "---", "purpose:"):
        assert said in text


def test_the_sections_stand_in_order() -> None:
    """§7 48."""
    text = prompt(PromptVariant.HINTS_AND_REMARKS)
    assert [line for line in text.splitlines() if line.startswith("#")] == TITLES


def test_the_variants_differ_in_purposes_and_remarks_only() -> None:
    """§7 48."""
    full = prompt(PromptVariant.HINTS_AND_REMARKS)
    hints = prompt(PromptVariant.HINTS)
    without_remarks = re.sub(r"### Remarks\n\n(- .*\n)+\n", "", full)
    assert hints == without_remarks
    assert prompt(PromptVariant.NO_HINTS) == re.sub(r"^(- [^:\n]*): .*$", r"\1", hints, flags=re.M)


def test_an_empty_list_says_none() -> None:
    """§7 48."""
    text = prompt(PromptVariant.HINTS, GenerationContext(goal=GOAL))
    assert text.count("\n\nNone.\n") == 5


def test_the_procedures_own_plans_and_beliefs_never_reach_the_prompt() -> None:
    """§7 49."""
    plans = [parse_plan(text) for text in ("-!reach(X) <- .print(X).", "+!look(X) : a.", "+!look(Y) : b.")]
    seen = context(meta_plan(GOAL), *plans)
    seen = replace(seen, beliefs=(*seen.beliefs, missing_plan_belief(GOAL)))
    text = prompt(PromptVariant.HINTS_AND_REMARKS, seen)
    assert "missing_plan_for" not in text
    assert "failure" not in text
    assert "generate" not in text
    assert text.count("achieve look(X)") == 1
    assert "look(Y)" not in text


def test_actions_beliefs_and_events_are_written_as_the_answer_format_spells_them() -> None:
    assert formatters.action(ActionSpec("go", ("", "speed"), "goes {Parameter1} at {Speed}")) == (
        "go(Parameter1,Speed): goes `Parameter1` at `Speed`"
    )
    assert formatters.action(ActionSpec("halt")) == "halt()"
    words = ["+!g", "-!g", "+?g", "-?g", "+g", "-g"]
    assert [formatters.trigger(parse_trigger(text)) for text in words] == [
        f"{word} g" for word in ("achieve", "achieve failure", "test", "test failure", "add", "remove")
    ]
    assert formatters.belief(parse_literal("at(home)[source(bob)]"), ()) == "at(home)"


def test_a_meaning_serves_every_instance_of_its_template() -> None:
    """Spec §2.8."""
    meaning = Meaning(parse_literal("near(Object, Place)"), "the {functor} {Object} of {Place}")
    assert meaning.of(parse_literal("near(rock, X)")) == "the near rock of `X`"
    with pytest.raises(ValueError, match=r"names \{Thing\}, which is none of functor, Object, Place"):
        Meaning(meaning.template, "a {Thing}")


def test_documentation_comments_of_a_program_become_what_is_known() -> None:
    program = parse_program(
        '//@ admissible goal a(X): "A of {X}"\n//@ meaning plan a(X): "how"\n'
        '//@ meaning action .say(text): "says"\n'
        '//@ remark "be brief"\n'
    )
    known = documentation_of(program.docs)
    assert [one.text for one in known.admissible_goals] == ["A of {X}"]
    assert [one.text for one in known.meanings] == ["how"]
    assert known.actions == (ActionSpec("say", ("",), "says", internal=True),)
    assert known.remarks == ("be brief",)
    broken = parse_program('\n//@ meaning belief a(X): "of {Y}"\n')
    with pytest.raises(ValueError, match="line 2: the meaning of"):
        documentation_of(broken.docs)


def test_the_purpose_of_an_invention_is_in_the_next_prompt() -> None:
    """§7 54; of two with one name the newer counts."""
    known = with_inventions(KNOWN, listing(9).inventions)
    text = prompt(PromptVariant.HINTS, replace(context(), known=known))
    assert "- achieve explore: explore the environment to find the home object when" in text
    assert "- visited(Location): indicates that the agent has already visited this location" in text
    newer = Meaning(parse_literal("explore"), "anew")
    assert (
        with_inventions(known, (replace(listing(9).inventions[0], purpose="anew"),)).admissible_goals[-1]
        == newer
    )
