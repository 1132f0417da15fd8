"""A model that is built late is what pydantic makes of the same class at once."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from engine.model import LateModel


class Late(BaseModel, metaclass=LateModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    number: int = Field(default=1, ge=0)

    @field_validator("number")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("it is odd")
        return value


class LateChild(Late):
    names: tuple[str, ...] = ()
    inner: Late | None = None


class Sooner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    number: int = Field(default=1, ge=0)

    _even = field_validator("number")(lambda value: Late._even(value))


class SoonerChild(Sooner):
    names: tuple[str, ...] = ()
    inner: Late | None = None


@pytest.mark.parametrize(
    "given",
    [
        {"number": -2},
        {"number": 3},
        {"names": 5},
        {"inner": {"number": 1}},
        {"other": 1},
        {"inner": {"x": 1}},
    ],
)
def test_errors_read_the_same(given: dict[str, Any]) -> None:
    problems = []
    for model in (LateChild, SoonerChild):
        with pytest.raises(ValidationError) as caught:
            model.model_validate(given)
        problems.append([(each["loc"], each["type"], each["msg"]) for each in caught.value.errors()])
    assert problems[0] == problems[1]


def test_values_and_schemas_are_the_same() -> None:
    late, sooner = (model(number=4, names=("a",), inner=Late(number=2)) for model in (LateChild, SoonerChild))
    assert late.model_dump_json() == sooner.model_dump_json()
    assert hash(late) == hash(sooner)
    assert pickle.loads(pickle.dumps(late)) == late
    schemas = [{**model.model_json_schema(), "title": ""} for model in (LateChild, SoonerChild)]
    assert schemas[0] == schemas[1]


FIRST_USES = {
    "instance": "Adopted(goal='g', text='t')",
    "validation": "Adopted.model_validate({'goal': 'g', 'text': 't'})",
    "fields": "Adopted.model_fields['goal']",
    "adapter": "TypeAdapter(list[Adopted]).validate_python([{'goal': 'g', 'text': 't'}])",
    "schema": "Adopted.model_json_schema()['properties']['goal']",
    "derived": "type('Derived', (Adopted,), {}, kind='x')(goal='g', text='t')",
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_the_first_use_builds_a_model_and_its_parents_alone(use: str) -> None:
    script = (
        "from pydantic import TypeAdapter; from engine.model import _written\n"
        "from engine.core.goals import GoalAdopted as Adopted, GoalEnded\n"
        f"assert Adopted in _written; {use}; assert Adopted not in _written and GoalEnded in _written\n"
        "assert Adopted(goal='g', text='t').body().startswith('{\"criteria\":[]')"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_threads_that_need_a_model_at_once_all_see_it_built() -> None:
    for _ in range(20):

        class Parent(BaseModel, metaclass=LateModel):
            model_config = ConfigDict(extra="forbid")

        class Child(Parent):
            value: int

        start = threading.Barrier(8)
        values: list[int] = []

        def use(model: type[Child], start: threading.Barrier, values: list[int]) -> None:
            start.wait()
            values.append(model(value=5).value)

        threads = [threading.Thread(target=use, args=(Child, start, values)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert values == [5] * 8


def test_an_adapter_of_a_late_model_is_that_of_the_model() -> None:
    class Alone(BaseModel, metaclass=LateModel):
        value: int

    assert TypeAdapter(Alone).validate_python({"value": "5"}) == Alone(value=5)
