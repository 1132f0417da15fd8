"""A session goes into one file, and opens and replays elsewhere; a file made to do harm leaves nothing."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import main
from app.cli.open import keep
from app.cli.sessions import query_sessions
from app.commands.headless import RunOptions, run_goal
from app.commands.settings import Settings
from engine.api.archiving import ArchiveError
from engine.api.engine import Engine
from engine.api.portable import export_session, import_session
from engine.core import commands as cmd
from engine.core.journal import canonical, chain_hash
from engine.core.ports import Ports

BIG = "line\n" * 40_000
AT = "2027-01-01T00:00:00.000000Z"
Change = Callable[[dict[str, bytes], dict[str, Any]], None]


async def flown(work: Path) -> Path:
    """A workspace with a session in it, whose answer is large enough for a blob."""
    (work / "sandbox").mkdir(parents=True)
    (work / "sandbox" / "big.txt").write_text(BIG)
    for goal in ("read big.txt", "write hunter2hunter2 to a.txt"):
        result = await run_goal(RunOptions(work, goal), out=io.StringIO(), err=io.StringIO())
        assert result["status"] == "GOAL_ACHIEVED"
    return work


def exported(work: Path, target: Path, **more: Any) -> Path:
    export_session(work, target, operator="ann", at=AT, **more)
    return target


async def test_a_session_opens_elsewhere_with_the_same_heads_and_replays(tmp_path: Path) -> None:
    work = await flown(tmp_path / "work")
    made = export_session(work, tmp_path / "s.pilot", operator="ann", at=AT)
    assert made.blobs
    code, answer, _ = keep(tmp_path / "s.pilot", tmp_path / "there")
    assert code == 0
    here = (await query_sessions(work, "verify", ""))[1]
    assert answer["head"] == made.head == here["head"]
    assert (await query_sessions(tmp_path / "there", "verify", ""))[1] == here
    code, replayed, _ = await query_sessions(tmp_path / "there", "replay", "")
    assert (code, replayed["head"]) == (0, here["head"])
    assert await query_sessions(tmp_path / "there", "show", "") == await query_sessions(work, "show", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.pilot", "there", "work"]
    again = await run_goal(
        RunOptions(tmp_path / "there", "list the files"), out=io.StringIO(), err=io.StringIO()
    )
    assert again["status"] == "NEEDS_OPERATOR", "it is a stranger's: its agents ask before every action"


async def test_one_agent_goes_with_what_it_depends_on_and_replays(tmp_path: Path) -> None:
    work = await flown(tmp_path / "work")
    engine = await Engine.open(work, config=Settings.load(work).engine_config())
    await engine.submit(cmd.CreateAgent(agent="other"))
    await engine.submit(cmd.AddNote(agent="other", text="of the other"))
    await engine.close()
    made = export_session(work, tmp_path / "s.pilot", agent="other", operator="ann", at=AT)
    assert made.streams == ("other", "workspace")
    assert keep(tmp_path / "s.pilot", tmp_path / "there")[0] == 0
    code, replayed, _ = await query_sessions(tmp_path / "there", "replay", "")
    assert (code, replayed["head"]) == (0, made.head)
    assert "of the other" in (await query_sessions(tmp_path / "there", "show", "other"))[2]
    with pytest.raises(ArchiveError, match="there is no agent 'nobody'"):
        exported(work, tmp_path / "t.pilot", agent="nobody")
    assert not (tmp_path / "t.pilot").exists()


async def test_what_is_redacted_is_nowhere_in_the_file_and_the_workspace_stays_as_it_is(
    tmp_path: Path,
) -> None:
    work = await flown(tmp_path / "work")
    before = (await query_sessions(work, "verify", ""))[1]
    file = exported(work, tmp_path / "s.pilot", patterns=["hunter2hunter2"])
    with zipfile.ZipFile(file) as archive:
        assert not [name for name in archive.namelist() if b"hunter2hunter2" in archive.read(name)]
    assert (await query_sessions(work, "verify", ""))[1] == before
    assert keep(file, tmp_path / "there")[0] == 0
    code, check, _ = await query_sessions(tmp_path / "there", "verify", "")
    assert (code, check["redacted"] > 0) == (0, True)


async def test_what_was_granted_does_not_count_elsewhere_and_no_key_goes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    work = tmp_path / "work"
    work.mkdir()
    engine = await Engine.open(work, config=Settings.load(work).engine_config())
    await engine.submit(cmd.CreateAgent(agent="pilot"))
    await engine.submit(cmd.GrantRule(agent="pilot", rule="write paths=**", scope="always"))
    await engine.close()
    file = exported(work, tmp_path / "s.pilot")
    key = (tmp_path / "home" / "leave.key").read_bytes()
    assert key not in file.read_bytes()
    assert keep(file, tmp_path / "there")[0] == 0
    engine = await Engine.open(tmp_path / "there", config=Settings.load(tmp_path / "there").engine_config())
    known = (await engine.view("pilot")).approvals
    await engine.close()
    assert not known.grants
    assert [grant.rule.command for grant in known.not_counted.grants] == ["write"]


async def test_a_session_that_is_looked_at_takes_no_command(tmp_path: Path) -> None:
    work = await flown(tmp_path / "work")
    config = Settings.load(work).engine_config()
    object.__setattr__(config, "looks_only", True)
    engine = await Engine.open(work, config=config)
    receipt = await engine.submit(cmd.Run(agent="pilot-1"))
    assert not receipt.ok
    assert "only looked at" in receipt.message
    await engine.close()


def test_a_file_without_a_terminal_is_replayed_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--workspace", str(tmp_path / "w"), "list the files"]) == 0
    assert main(["sessions", "export", "--workspace", str(tmp_path / "w"), str(tmp_path / "s.pilot")]) == 0
    capsys.readouterr()
    assert main(["open", "--json", str(tmp_path / "s.pilot")]) == 0
    assert json.loads(capsys.readouterr().out)["matches"]
    assert main(["open", str(tmp_path / "none.pilot")]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.pilot", "w"]


# ------------------------------------------------------------------ files made to do harm


def members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(file: Path, change: Change) -> Path:
    """The file with other members, whose manifest says of them what is so."""
    parts = members(file)
    facts = json.loads(parts.pop("manifest.json"))
    change(parts, facts)
    facts["members"] = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}
    bad = file.with_name("bad.pilot")
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in {**parts, "manifest.json": canonical(facts).encode()}.items():
            archive.writestr(name, part)
    return bad


def changed_row(parts: dict[str, bytes], number: int, place: int, value: Any) -> None:
    lines = parts["events.jsonl"].splitlines()
    row = json.loads(lines[number])
    row[place] = value
    lines[number] = canonical(row).encode()
    parts["events.jsonl"] = b"\n".join(lines) + b"\n"


def another_body(parts: dict[str, bytes], _facts: dict[str, Any]) -> None:
    changed_row(parts, 3, 8, '{"text":"another"}')


def rehashed(parts: dict[str, bytes], _facts: dict[str, Any]) -> None:
    """The last event is another one, under a hash that fits."""
    lines = [json.loads(line) for line in parts["events.jsonl"].splitlines()]
    row = lines[-1]
    before = [each for each in lines[:-1] if each[1] == row[1]][-1][9]
    fields = (*row[1:6], tuple(json.loads(row[6])), row[7], '{"a":1}')
    changed_row(parts, -1, 8, '{"a":1}')
    changed_row(parts, -1, 9, chain_hash(before, *fields))


HARM: dict[str, Change] = {
    "a path out": lambda parts, _facts: parts.update({"../../out": b"x"}),
    "an absolute path": lambda parts, _facts: parts.update({"/tmp/out": b"x"}),
    "another name": lambda parts, _facts: parts.update({".pilothouse/journal.db": b"x"}),
    "a blob of another name": lambda parts, _facts: parts.update({f"blobs/{'0' * 64}": b"x"}),
    "a blob below a blob": lambda parts, _facts: parts.update({f"blobs/{'0' * 64}/x": b"x"}),
    "a changed body": another_body,
    "a changed end": rehashed,
    "a place that is no number": lambda parts, _facts: changed_row(parts, 2, 0, "3"),
    "a huge version": lambda parts, _facts: changed_row(parts, 2, 2, 2**70),
    "causes that are none": lambda parts, _facts: changed_row(parts, 2, 6, "{}"),
    "an unknown cause": lambda parts, _facts: changed_row(parts, 2, 6, '["nobody:9"]'),
    "no event": lambda parts, _facts: parts.update({"events.jsonl": b""}),
    "no JSON": lambda parts, _facts: parts.update({"events.jsonl": b"x\n"}),
    "deep JSON": lambda parts, _facts: parts.update({"events.jsonl": b"[" * 100_000 + b"\n"}),
    "more events than it counts": lambda _parts, facts: facts.update(events=1),
    "fewer events than it counts": lambda _parts, facts: facts.update(events=2**60),
    "another head": lambda _parts, facts: facts.update(head="0" * 64),
    "a newer format": lambda _parts, facts: facts.update(format=2),
    "no format": lambda _parts, facts: facts.pop("format"),
    "facts that are none": lambda _parts, facts: facts.update(meta=[], events="9"),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sound")
    assert main(["run", "--workspace", str(place / "w"), "list the files"]) == 0
    return exported(place / "w", place / "s.pilot")


@pytest.mark.parametrize("harm", HARM)
def test_a_file_made_to_do_harm_is_refused_with_nothing_written(
    sound: Path, tmp_path: Path, harm: str
) -> None:
    bad = rewritten(sound, HARM[harm])
    code, _, words = keep(bad, tmp_path / "there")
    assert code == 2
    assert "bad.pilot" in words
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ArchiveError):
        import_session(bad, tmp_path, Ports().clock.now())
    assert list(tmp_path.iterdir()) == []


def raw(file: Path, change: Callable[[zipfile.ZipFile, dict[str, bytes]], None]) -> Path:
    parts = members(file)
    bad = file.with_name("bad.pilot")
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
        change(archive, parts)
    return bad


def link(archive: zipfile.ZipFile, _parts: dict[str, bytes]) -> None:
    info = zipfile.ZipInfo(f"blobs/{'1' * 64}")
    info.external_attr = 0o120777 << 16
    archive.writestr(info, "/etc/passwd")


def twice(archive: zipfile.ZipFile, parts: dict[str, bytes]) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("events.jsonl", parts["events.jsonl"])


def bomb(archive: zipfile.ZipFile, _parts: dict[str, bytes]) -> None:
    with archive.open(zipfile.ZipInfo(f"blobs/{'2' * 64}"), "w", force_zip64=True):
        pass
    archive.getinfo(f"blobs/{'2' * 64}").file_size = 2**40


@pytest.mark.parametrize("change", [link, twice, bomb])
def test_links_doubles_and_bombs_are_refused_with_nothing_written(
    sound: Path, tmp_path: Path, change: Callable[[zipfile.ZipFile, dict[str, bytes]], None]
) -> None:
    code, _, words = keep(raw(sound, change), tmp_path / "there")
    assert code == 2, words
    assert list(tmp_path.iterdir()) == []


def test_a_cut_or_changed_file_is_refused(sound: Path, tmp_path: Path) -> None:
    content = sound.read_bytes()
    for bad in (content[:-30], content[: len(content) // 2], b"", b"PK\x03\x04", b"\0" + content[1:-1]):
        (tmp_path / "bad.pilot").write_bytes(bad)
        assert keep(tmp_path / "bad.pilot", tmp_path / "there")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["bad.pilot"]


def test_no_directory_that_has_something_is_written_to(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("x")
    assert "is there already" in keep(sound, tmp_path / "there")[2]
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "is there already" in keep(sound, tmp_path / "link")[2]
    assert keep(sound, tmp_path / "no" / "such" / "place")[0] == 2
