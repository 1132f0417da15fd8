"""`pilothouse explorer`: its JSON, its tables, and what it says of bad input (issue 4; spec BDI §3.6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from explorer_answers import FLYING

from app.cli import main
from app.experiment_tables import TABLES, published

EXPERIMENT = """\
seeds = "7"
[[answers]]
model = "Claude"
source = "listing-5.8"
prompts = ["no-hints"]
temperatures = [0.5]
[[answers]]
model = "DeepSeek"
source = "deepseek-{prompt}-{temperature}-{repeat}.txt"
prompts = ["hints", "hints-and-remarks"]
temperatures = [0.1]
repeats = 2
"""


def explored(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["explorer", *options, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["explorer", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_the_baseline_gives_the_values_of_the_issue(capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(capsys, "--plans", "baseline", "--seeds", "7", "--compat")
    assert {
        name: found[name] for name in ("PC", "CC", "PBC", "GC", "RR", "NGC", "NBC", "GSA", "BSA", "TSR")
    } == {
        "PC": 3,
        "CC": 1.0,
        "PBC": 1.33,
        "GC": 3,
        "RR": 0,
        "NGC": 0,
        "NBC": 0,
        "GSA": 0,
        "BSA": 0,
        "TSR": 100,
    }
    assert found["GAT"] == {"ref_cycles": 33, "moves": 3}
    assert explored(capsys, "--pgp", "--compat")["GAT"]["ref_cycles"] == 37
    assert explored(capsys, "--native")["GAT"] == {"cycles": 7, "moves": 3}


def test_many_seeds_give_mean_and_spread_of_both_cycles(capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(capsys, "--seeds", "1-10")
    assert set(found["GAT"]) == set(found["spread"]) == {"ref_cycles", "cycles", "moves"}
    spread = found["spread"]["cycles"]
    assert spread["min"] <= spread["median"] <= spread["max"]
    assert spread["min"] <= found["GAT"]["cycles"] <= spread["max"]


def test_a_person_reads_the_same_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explorer", "--plans", "5.9"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("listing-5.9: plans generated when the goal found no plan; seed 7\n")
    assert "GAT ref_cycles  37" in text
    assert main(["explorer", "--seeds", "1-2"]) == 0
    assert "deviation" in capsys.readouterr().out


def test_programs_and_answers_are_read_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, answer = tmp_path / "mine.asl", tmp_path / "answer.txt"
    program.write_text("+!reach(X) <- move(east); move(south_east); move(south).")
    answer.write_text(FLYING)
    assert explored(capsys, "--plans", str(program), "--native")["GAT"]["moves"] == 3
    found = explored(capsys, "--plans", str(answer))
    assert (found["TSR"], found["GAT"]) == (0, {"ref_cycles": None, "cycles": None, "moves": None})
    assert found["problems"] == ["line 3: +!reach(X): line 5: there is no action fly/1"]


def test_bad_input_is_named_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, binary = tmp_path / "broken.asl", tmp_path / "binary"
    broken.write_text("+!reach(X <- move(X).\n")
    binary.write_bytes(b"\xff\xfe\x00")
    assert "broken.asl:1:11: expected" in refused(capsys, "--plans", str(broken))
    assert "not a text in UTF-8" in refused(capsys, "--plans", str(binary))
    assert "it is none of baseline, listing-5.8" in refused(capsys, "--plans", "5.99")
    assert "Is a directory" in refused(capsys, "--plans", str(tmp_path))
    for seeds in ("x", "3-1", "1-", "-5", "0-99999", "9999999999", "٣-٤x"):
        assert "are no seeds" in refused(capsys, f"--seeds={seeds}")


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    from engine.worlds.explorer_files import recorded_answer

    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT)
    for name in ("hints-0.1-1", "hints-0.1-2", "hints-and-remarks-0.1-1"):
        (tmp_path / f"deepseek-{name}.txt").write_text(recorded_answer("listing-5.9"))
    (tmp_path / "deepseek-hints-0.1-2.txt").write_text(FLYING)
    return path


def test_an_experiment_runs_the_grid_and_says_which_answers_are_missing(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explored(capsys, "--experiment", str(experiment))
    assert (found["answers"], len(found["trials"]), len(found["missing"])) == (5, 4, 1)
    assert "deepseek-hints-and-remarks-0.1-2.txt: No such file" in found["missing"][0]
    ours = found["tables"]["5.2"]["ours"]
    assert [(row["model"], row["prompt"], row["PC"], row["TSR"]) for row in ours] == [
        ("Claude", "no-hints", "3.00", "100.00"),
        ("DeepSeek", "hints", "2.50", "50.00"),
        ("DeepSeek", "hints-and-remarks", "4.00", "100.00"),
    ]
    assert [row["GAT"] for row in found["tables"]["5.5"]["ours"]] == ["38.00", "37.00"]
    assert [row["TSR"] for row in found["tables"]["5.4"]["ours"]] == ["100.00", "100.00", "50.00"]


def test_the_tables_show_the_published_rows_beside_ours(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explorer", "--experiment", str(experiment)]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("Table 5.2: by model and prompt")
    assert [" ".join(line.split()) for line in lines[place + 2 : place + 4]] == [
        "ours Claude no-hints 3.00 1.33 1.67 0.00 0.00 0.00 0.00 0.00 1.00 100.00",
        "thesis Claude no-hints 5.17 1.88 1.52 3.86 0 2.21 1.21 0.41 1.76 6.90",
    ]
    assert [line for line in lines if line.startswith("Table")] == [
        f"Table {table.name}: {table.title}" for table in TABLES
    ]


def test_the_published_tables_are_whole() -> None:
    assert [len(published(table.name)) for table in TABLES] == [12, 12, 18, 5]
    for table in TABLES:
        for row in published(table.name):
            assert tuple(row) == (*table.keys, *table.values)
            assert all(float(row[name]) >= 0 for name in table.values)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("seeds = 7", "seeds"),
        ("answers = []", "answers"),
        ("broken", "Expected '='"),
        (EXPERIMENT.replace('["no-hints"]', '["some"]'), "answers.0.prompts.0"),
        (EXPERIMENT.replace("repeats = 2", "repeats = 100000"), "answers.1.repeats"),
        (EXPERIMENT.replace('"7"', '"x"'), "are no seeds"),
        (EXPERIMENT.replace("repeats = 2", "repeat = 2"), "answers.1.repeat"),
    ],
)
def test_a_file_that_is_no_experiment_is_named_with_its_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    path = tmp_path / "e.toml"
    path.write_text(text)
    line = refused(capsys, "--experiment", str(path))
    assert complaint in line
    assert "e.toml" in line
