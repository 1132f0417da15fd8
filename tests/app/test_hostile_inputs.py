"""Hostile files are refused with a sentence or used: no traceback, no hang, nothing run outside the jail."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests import forking
from tests.app.hostile_inputs import KINDS, Hostile
from tests.patience import PATIENCE_S
from tests.rounds import rounds
from tests.trusting import trust_folder

ROUNDS = rounds(1, full=60)
"""Of each kind."""
CODES = frozenset({0, 1, 2, 3, 4, 5, 78})
"""How commands end that did or refused what they were asked; see `pilothouse --help`."""


def used(hostile: Hostile, workspace: Path) -> tuple[list[str], list[int]]:
    """Use it as its user does; what went wrong, and the exit codes."""
    wrong, codes = [], []
    for line in hostile.lines:
        words = [word.replace("{}", str(workspace)) for word in line]
        if words[0] in ("do", "run", "doctor"):
            words += ["--workspace", str(workspace)]
        if words[0] == "run":
            words += ["--timeout", "20"]
        with contextlib.suppress(TimeoutError):
            done = forking.run(forking.CLI, *words, cwd=workspace)
            codes.append(done.returncode)
            if "Traceback" in done.stdout + done.stderr or done.returncode not in CODES:
                wrong.append(f"{words}: exit {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
            elif done.returncode and not (done.stdout + done.stderr).strip():
                wrong.append(f"{words}: exit {done.returncode} without a word")
            continue
        wrong.append(f"{words}: not done after {PATIENCE_S:g} s")
    return wrong, codes


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_hostile_files_are_refused_or_used(
    kind: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(kind)
    wrong, ends = [], Counter[int]()
    for seed in range(ROUNDS):
        place = tmp_path / f"r{seed}"
        (place / "home").mkdir(parents=True, mode=0o700)
        monkeypatch.setenv("PILOTHOUSE_HOME", str(place / "home"))
        workspace = place / "workspace"
        workspace.mkdir()
        hostile = kind(workspace, random.Random(f"{kind.__name__} {seed}"))
        if hostile.trusted:
            with contextlib.suppress(Exception):  # what cannot be trusted is used without
                trust_folder(workspace)
        problems, codes = used(hostile, workspace)
        ends.update(codes)
        made = [path for path in place.rglob("pwned-*") if "sandbox" not in path.parts]
        if made:
            problems.append(f"ran outside of the jail: {made}")
        wrong += [f"{kind.__name__} {seed}: {problem}" for problem in problems]
        shutil.rmtree(place, ignore_errors=True)
    print(kind.__name__, dict(ends))
    assert not wrong, "\n\n".join(wrong[:5])


def test_what_never_ends_in_the_place_of_a_program_is_refused(tmp_path: Path) -> None:
    endless = tmp_path / "endless.asl"
    os.mkfifo(endless)
    (tmp_path / "a.asl").write_text('{ include("endless.asl") }\n!a. +!a <- .print(x).\n')
    (tmp_path / "both.mas").write_text("a = endless.asl\n")
    workspace = ("--workspace", str(tmp_path / "workspace"))
    for words in (
        ("asl", "endless.asl"),
        ("asl", "both.mas"),
        ("asl", "a.asl"),
        ("do", f"agent_create asl_agent mind file={endless}", *workspace),
        ("run", "--fleet", str(endless), *workspace),
    ):
        done = forking.run(forking.CLI, *words, cwd=tmp_path)
        text = done.stdout + done.stderr
        assert done.returncode in (1, 2), text
        assert "no plain file" in text, text
