"""Each rule of the language gives here what it gives under Jason, or what the case says instead, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.bdi.conformance.cases import Case, case_files, read_cases
from tests.engine.bdi.running import Run


def printed(case: Case) -> list[str]:
    """What a case prints here; in the order of agents where there are several."""
    run = Run(case.text, **case.agents).end(case.wait * 10)
    if not case.agents:
        return run.said
    return [f"{agent}: {text}" for agent, text in sorted(run.by_agent, key=lambda pair: pair[0])]


def differences(path: Path) -> list[str]:
    """The cases of a file that print something else than they should."""
    found = []
    for case in read_cases(path):
        expected = case.prints if case.ours is None else case.ours
        try:
            lines = printed(case)
        except Exception as error:
            lines = [f"{type(error).__name__}: {error}"]
        if lines != expected:
            found.append(f"{case.name}\n  expected {expected}\n  printed  {lines}")
    return found


@pytest.mark.parametrize("path", case_files(), ids=lambda path: path.stem)
def test_cases_print_what_jason_prints(path: Path) -> None:
    assert "\n".join(differences(path)) == ""


@pytest.mark.parametrize("path", case_files(), ids=lambda path: path.stem)
def test_a_difference_has_a_reason(path: Path) -> None:
    cases = read_cases(path)
    assert len({case.name for case in cases}) == len(cases)
    assert all((case.ours is None) == (not case.reason) for case in cases)
    assert all(case.ours != case.prints for case in cases)
