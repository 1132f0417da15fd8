"""`pilothouse explorer`: its JSON, its tables, and what it says of bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from explorer_answers import FLYING

from app.cli.main import main
from app.cli.tables import TABLES, published_rows
from engine.tools.worlds.explorer import recorded_answer


def explored(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["explorer", *options, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    try:
        code = main(["explorer", *options])
    except SystemExit as error:  # argparse's own
        code = int(error.code or 0)
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


CONTRACT = (
    *("runs", "TSR", "GAT", "PC", "CC", "cc_ref", "PBC", "GC", "RR", "rr_ref", "NGC", "NBC", "GSA"),
    *("BSA", "bsa_ref", "PRAS", "unparsable"),
)


def test_the_baseline_gives_the_values_of_the_specification(capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(capsys, "--plans", "baseline", "--seeds", "7", "--compat")
    assert tuple(found)[: len(CONTRACT)] == CONTRACT
    assert {name: found[name] for name in CONTRACT} == {
        "runs": 1,
        "TSR": 100,
        "GAT": {"ref_cycles": 33, "cycles": 7, "moves": 3},
        "PC": 3,
        "CC": 1.0,
        "cc_ref": 1.0,
        "PBC": 1.33,
        **dict.fromkeys(("RR", "rr_ref", "NGC", "NBC", "GSA", "BSA", "bsa_ref", "unparsable"), 0),
        "GC": 3,
        "PRAS": {"value": 1.0, "kind": "surrogate"},
    }


@pytest.mark.parametrize(
    ("options", "ref_cycles", "cycles"),
    [
        (("--pgp",), 37, 10),
        (("--answer", "5.8"), 38, 11),
        (("--answer", "5.9"), 37, 10),
        (("--plans", "5.9"), 37, 10),
        (("--native",), 33, 7),
    ],
)
def test_both_cycles_are_always_told(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], ref_cycles: int, cycles: int
) -> None:
    assert explored(capsys, *options)["GAT"] == {"ref_cycles": ref_cycles, "cycles": cycles, "moves": 3}


def test_many_seeds_give_mean_and_spread_of_both_cycles(capsys: pytest.CaptureFixture[str]) -> None:
    found = explored(capsys, "--seeds", "1-8,10,10")
    assert (found["runs"], found["seeds"]) == (9, "1-8,10,10")
    assert set(found["GAT"]) == set(found["spread"]) == {"ref_cycles", "cycles", "moves"}
    for name, spread in found["spread"].items():
        assert set(spread) == {"mean", "sd", "median", "min", "max"}
        assert spread["min"] <= spread["median"] <= spread["max"]
        assert spread["min"] <= spread["mean"] <= spread["max"]
        assert found["GAT"][name] == spread["mean"]


def test_success_and_moves_are_those_of_the_cycle_that_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mains = [explored(capsys, option)["main"] for option in ("--compat", "--native")]
    assert mains == ["ref_cycles", "cycles"]


def test_a_person_reads_the_same_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explorer", "--answer", "5.9", "--seeds", "7,8"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == (
        "listing-5.9: plans generated when the goal found no plan; seeds 7,8, 2 runs in each cycle"
    )
    assert "BSA 2" in lines
    assert "PRAS 0.21 by surrogate" in lines
    place = lines.index("GAT mean sd median min max")
    assert [line.split()[0] for line in lines[place + 1 : place + 4]] == ["ref_cycles", "cycles", "moves"]


def test_programs_and_answers_are_read_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, answer = tmp_path / "mine.asl", tmp_path / "answer.txt"
    program.write_text("+!reach(X) <- move(east); move(south_east); move(south).")
    answer.write_text(FLYING)
    assert explored(capsys, "--plans", str(program), "--native")["GAT"]["moves"] == 3
    found = explored(capsys, "--answer", str(answer))
    assert (found["TSR"], found["GAT"]) == (0, {"ref_cycles": None, "cycles": None, "moves": None})
    assert (found["unparsable"], found["unknown_actions"], found["executable"]) == (0, 1, True)
    assert found["problems"] == ["line 3: +!reach(X): line 5: there is no action fly/1"]


def test_bad_input_is_named_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, binary = tmp_path / "broken.asl", tmp_path / "binary"
    broken.write_text("+!reach(X <- move(X).\n")
    binary.write_bytes(b"\xff\xfe\x00")
    assert "broken.asl:1:11: expected" in refused(capsys, "--plans", str(broken))
    assert "not a text in UTF-8" in refused(capsys, "--plans", str(binary))
    assert "it is none of baseline, listing-5.8" in refused(capsys, "--plans", "5.99")
    assert "no plain file" in refused(capsys, "--plans", str(tmp_path))
    assert "No such file" in refused(capsys, "--answer", str(tmp_path / "none.txt"))
    assert "--temperature is for --thinker" in refused(capsys, "--temperature", "0.5")
    assert "takes no --judge" in refused(capsys, "--tables", "answers", "--judge", "claude")
    assert "--keep is for --thinker" in refused(capsys, "--keep", "answer.txt")
    assert "not allowed with argument" in refused(capsys, "--answer", "5.8", "--thinker", "recorded:x")
    for seeds in ("x", "3-1", "1-", "-5", "0-99999", "9999999999", "٣-٤x", "", "1,,2", "1,2-"):
        assert "are no seeds" in refused(capsys, f"--seeds={seeds}")


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    listing = recorded_answer("listing-5.9")
    texts = {
        "Claude/no-hints-0.5-1": recorded_answer("listing-5.8"),
        "DeepSeek/hints-0.1-1": listing,
        "DeepSeek/hints-0.1-2": FLYING,
        "DeepSeek/hints-and-remarks-0.1-1": listing,
        "DeepSeek/hints-and-remarks-0.1-2": "",
    }
    for name, text in texts.items():
        path = tmp_path / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_tables_are_of_all_answers_and_say_which_failed(
    answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explored(capsys, "--tables", str(answers))
    assert (found["answers"], len(found["trials"])) == (5, 4)
    assert found["failures"] == {"DeepSeek/hints-and-remarks-0.1-2.txt": "empty: the answer is empty"}
    ours = found["tables"]["5.2"]["ours"]
    assert [(row["model"], row["prompt"], row["PC"], row["TSR"]) for row in ours] == [
        ("Claude", "no-hints", "3.00", "100.00"),
        ("DeepSeek", "hints", "2.50", "50.00"),
        ("DeepSeek", "hints-and-remarks", "4.00", "100.00"),
    ]
    assert [row["GAT"] for row in found["tables"]["5.5"]["ours"]] == ["38.00", "37.00"]
    assert [row["TSR"] for row in found["tables"]["5.4"]["ours"]] == ["100.00", "100.00", "50.00"]
    assert found["PRAS"]["DeepSeek"] == 0.21


def test_one_command_makes_the_tables_of_what_the_thesis_prints_and_files_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explorer", "tables", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "Elastic Goldwasser: CC 1.5 is right as published" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("ours")][-4:] == [
        ["ours", "Claude", "3.00", "1.33", "1.67", *["0.00"] * 5, "1.00", "38.00"],
        ["ours", "DeepSeek", "4.00", "1.50", "2.25", "0.00", "0.00", *["1.00"] * 3, "4.00", "37.00"],
        ["ours", "GPT-4.1", "5.00", "2.40", "1.40", "5.00", "0.00", "2.00", *["0.00"] * 3, "39.00"],
        ["ours", "Gemini", "6.00", "1.83", "1.33", "5.00", "0.00", "2.00", "0.00", "0.00", "3.00", "42.00"],
    ]
    with (tmp_path / "table-5.5.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["GAT"] for row in rows if row["whose"] == "ours"] == ["38.00", "37.00", "39.00", "42.00"]
    picture = ElementTree.parse(tmp_path / "tables.svg").getroot()
    assert len(picture.findall("{*}rect")) > 300


def test_a_model_is_asked_for_each_prompt_and_temperature_and_only_for_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, kept = tmp_path / "answer.txt", tmp_path / "kept"
    recording.write_text(recorded_answer("listing-5.8"))
    asked = ("tables", "--model", f"recorded:{recording}", "--tables", str(kept))
    assert explored(capsys, *asked)["answers"] == 9
    (one, *others) = sorted(kept.glob("*/*.txt"))
    assert len(others) == 8
    one.unlink()
    others[0].write_text(recorded_answer("listing-5.9"))
    found = explored(capsys, *asked)
    assert [row["PC"] for row in found["tables"]["5.5"]["ours"]] == ["3.11"]


def test_the_tables_show_the_published_rows_beside_ours(
    answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explorer", "--tables", str(answers)]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("Table 5.2: by model and prompt")
    assert [" ".join(line.split()) for line in lines[place + 2 : place + 4]] == [
        "ours Claude no-hints 3.00 1.33 1.67 0.00 0.00 0.00 0.00 0.00 1.00 100.00",
        "thesis Claude no-hints 5.17 1.88 1.52 3.86 0 2.21 1.21 0.41 1.76 6.90",
    ]
    assert [line for line in lines if line.startswith("Table")] == [
        f"Table {table.name}: {table.title}" for table in TABLES
    ]
    assert "  DeepSeek: 0.21" in lines


def test_the_published_tables_are_whole() -> None:
    assert [len(published_rows(table.name)) for table in TABLES] == [12, 12, 18, 5]
    for table in TABLES:
        for row in published_rows(table.name):
            assert tuple(row) == (*table.keys, *table.values)
            assert all(float(row[name]) >= 0 for name in table.values)


def test_a_folder_without_answers_or_with_other_files_is_named_with_its_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there are no answers MODEL/PROMPT-TEMPERATURE" in refused(capsys, "--tables", str(tmp_path))
    assert "no answers" in refused(capsys, "--tables", str(tmp_path / "none"))
    (tmp_path / "Claude").mkdir()
    (tmp_path / "Claude" / "notes.txt").write_text("x")
    line = refused(capsys, "--tables", str(tmp_path))
    assert "notes.txt: an answer is named PROMPT-TEMPERATURE-REPEAT.txt with a prompt of no-hints" in line
