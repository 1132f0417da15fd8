"""What a generation is run with, parameter by parameter (spec BDI §2.7; §7 50)."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, fields
from typing import Any

import pytest

from engine.generation.pgp.config import DEFAULTS, EffectiveConfig, GenerationConfig, Secret, resolve
from engine.generation.pgp.context import ContextFilter, without_actions
from engine.generation.pgp.prompt import PromptBuilder, PromptVariant, user_prompt

TOKEN = "sk-very-secret"
VALUES: dict[str, tuple[Any, Any, Any]] = {
    "model": ("small", "middle", "large"),
    "temperature": (0.1, 0.0, 0.9),
    "max_tokens": (1, 2, 3),
    "url": ("http://a", "http://b", "https://c:8"),
    "token": (Secret("a"), Secret("b"), Secret("c")),
    "request_timeout_s": (1.0, 2.0, 3.0),
    "connect_timeout_s": (1.0, 2.0, 3.0),
    "socket_timeout_s": (1.0, 2.0, 3.0),
    "filters": ((), (without_actions("a"),), (without_actions("b"), without_actions("c"))),
    "system_prompt": tuple(PromptBuilder(name, lambda context: ()) for name in "abc"),
    "user_prompt": tuple(user_prompt(variant) for variant in PromptVariant),
}


def test_every_parameter_is_tried_here() -> None:
    assert {one.name for one in fields(GenerationConfig)} == {*VALUES, "remarks"}
    assert {one.name for one in fields(EffectiveConfig)} == {*VALUES, "remarks"}


@pytest.mark.parametrize("name", VALUES)
def test_the_most_specific_level_that_sets_a_parameter_decides_it(name: str) -> None:
    plan, agent, system = (GenerationConfig(**{name: value}) for value in VALUES[name])
    blank = GenerationConfig()

    def chosen(*levels: GenerationConfig | None) -> Any:
        return getattr(resolve(*levels), name)

    assert chosen(plan, agent, system) is VALUES[name][0]
    assert chosen(blank, agent, system) is VALUES[name][1]
    assert chosen(None, blank, system) is VALUES[name][2]
    assert chosen(None, None, None) is getattr(DEFAULTS, name)


def test_a_level_leaves_the_other_parameters_to_the_levels_above() -> None:
    """The thesis' program replaces a level as a whole."""
    found = resolve(
        GenerationConfig(temperature=0.0), GenerationConfig(max_tokens=7), GenerationConfig(model="m")
    )
    assert (found.temperature, found.max_tokens, found.model, found.url) == (0.0, 7, "m", DEFAULTS.url)


def test_remarks_are_joined_with_the_plans_first() -> None:
    levels = (GenerationConfig(remarks=(text,)) for text in ("of the plan", "of the agent", "of the system"))
    assert resolve(*levels).remarks == ("of the plan", "of the agent", "of the system")


def test_filters_given_on_a_level_replace_those_above_even_by_none() -> None:
    mine = ContextFilter("mine", lambda context: context)
    assert resolve(None, GenerationConfig(filters=()), GenerationConfig(filters=(mine,))).filters == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"max_tokens": 0},
        {"url": "ftp://host"},
        {"url": "http://user:password@host"},
        {"url": "http://[broken"},
        {"request_timeout_s": 0.0},
        {"socket_timeout_s": float("inf")},
        {"remarks": ("",)},
    ],
)
def test_a_value_out_of_range_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)).removesuffix("s")):
        GenerationConfig(**wrong)


def test_the_token_is_shown_and_stored_nowhere() -> None:
    config = GenerationConfig(token=Secret(TOKEN))
    found = resolve(config, None, None)
    shown = (
        f"{config} {config!r} {found} {found!r} {found.token} {found.token!r} {json.dumps(found.public())}"
    )
    assert TOKEN not in shown
    assert found.token is not None
    for store in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            store(found.token)
    with pytest.raises(TypeError):
        asdict(found)
    assert found.token.reveal() == TOKEN


def test_tokens_are_compared_without_showing_them() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert GenerationConfig(token=Secret("a")) == GenerationConfig(token=Secret("b"))
    with pytest.raises(TypeError):
        hash(Secret("a"))
