"""What is held out for the sample project is material, with tests that are meant to fail."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from engine.improve.judge import judge

collect_ignore_glob = ["held_out/*"]


@pytest.fixture(scope="module", autouse=True)
def _judged_in_few_rounds() -> Iterator[None]:
    """As many rounds as decide a clear case; more of them would only make the tests longer."""
    with pytest.MonkeyPatch.context() as patch:
        few = functools.partial(judge.JudgeBudget, again=1, rounds=6, most=6)
        patch.setattr(judge, "JudgeBudget", few)
        yield
