"""What is in a folder counts only once its user trusts it, and a journal's grants only under their seal."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import stat
from pathlib import Path

import pytest

from app.cli.sessions import archive_contents, query_sessions, redact_contents, repair_journal
from app.commands.command_runner import run_command
from app.commands.folder_items import items_of
from app.commands.headless import RunOptions, Status, open_engine, run_goal
from app.commands.settings import Settings, tightened
from engine.agent.actions.snapshots import SnapshotRule
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.approvals import Answer, Scope, Source
from engine.core.trust import FolderTrust, TrustError
from engine.core.user_key import KEY_FILE
from engine.sandbox.files import remove_directory
from engine.sandbox.policy import Network, Tier
from tests import forking
from tests.app import strangers
from tests.app.cockpit.flight import cockpit
from tests.app.strangers import AGENT, GOAL, PARTS, journal, make, pwned, recipe, send, settings, until
from tests.engine.crew.builder.corpus import laid
from tests.engine.sandbox.jail_runs import need
from tests.engine.sandbox.test_jail_degrades import WITHOUT_NAMESPACES
from tests.rounds import rounds
from tests.trusting import trust_folder, write_trusted

TIERS = {Tier.FULL: "", Tier.KERNEL: WITHOUT_NAMESPACES}
SHARE = 20
"""Of so many strangers' workspaces one is tried in every way that there is."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user whose own settings ask before every action."""
    own = tmp_path / "home"
    own.mkdir(mode=0o700)
    (own / "pilothouse.toml").write_text('[approvals]\npreset = "ask"\n', encoding="utf-8")
    monkeypatch.setenv("PILOTHOUSE_HOME", str(own))
    return own


def run_once(workspace: Path, goal: str = GOAL, trust: str = "") -> Status:
    """`pilothouse run` on a goal."""
    options = RunOptions(workspace, goal, quiet=True, trust=trust)
    with open(os.devnull, "w") as nowhere:
        return Status(asyncio.run(run_goal(options, out=nowhere, err=nowhere))["status"])


def do(workspace: Path, line: str) -> tuple[int, str]:
    """`pilothouse do`."""
    code, _, text = asyncio.run(run_command(workspace, line, quiet=True))
    return code, text


async def flown(workspace: Path) -> None:
    """The cockpit, opened restricted, with the key that lets the agent run."""
    async with cockpit(workspace, settings=Settings.load(workspace)) as flight:
        await flight.shows("RESTRICTED")
        await flight.type(f"goal {GOAL}")
        await flight.until(lambda: bool(flight.state.open_goals), "the goal")
        await flight.type("run")
        await flight.until(lambda: flight.state.approvals.question is not None, "the agent asks")


# ------------------------------------------------------------------ strangers


def tried(workspace: Path, *, everywhere: bool) -> None:
    """Use a stranger's workspace as its user would; nothing of it may run, and nothing may be loosened."""
    loaded = Settings.load(workspace)
    assert (loaded.network, loaded.accept_paths, loaded.snapshots) == (
        Network.OFF,
        False,
        SnapshotRule.REQUIRED,
    )
    assert (loaded.approvals.default, loaded.keys) == (Answer.ASK, {})
    assert run_once(workspace) is Status.NEEDS_OPERATOR
    assert do(workspace, "run")[0] == 3
    assert do(workspace, "step")[0] == 3
    if everywhere:
        asyncio.run(flown(workspace))
        for front in TIERS.values():
            code = front + "\n" + forking.CLI
            done = forking.run(code, "run", GOAL, "--workspace", str(workspace), cwd=workspace.parent)
            assert done.returncode == 3, done.stderr
            assert done.stderr.count("restricted: ") == 1
    assert pwned(workspace) == []


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_thing_that_a_folder_could_loosen_counts_for_nothing(
    part: strangers.Part, tmp_path: Path
) -> None:
    make(tmp_path / "sent", random.Random(1), part)
    tried(send(tmp_path / "sent", tmp_path / "here"), everywhere=part in (settings, journal))


@pytest.mark.slow
def test_strangers_workspaces_run_nothing_unasked(tmp_path: Path) -> None:
    need(Tier.FULL)
    for seed in range(rounds(4, full=200)):
        make(tmp_path / f"sent-{seed}", random.Random(seed))
        here = send(tmp_path / f"sent-{seed}", tmp_path / f"here-{seed}")
        tried(here, everywhere=seed % SHARE == 0)


def test_the_same_folder_would_run_its_program_once_it_is_trusted(tmp_path: Path) -> None:
    """Else the tests above would prove nothing."""
    here = tmp_path / "here"
    make(here, random.Random(2), settings, recipe)
    (hidden,) = (here / "recipes").iterdir()
    hidden.write_text(hidden.read_text().replace("'start'", "'run'"))  # a job would end with the run
    digest = Settings.load(here).trust.digest
    assert run_once(here, trust=digest) is Status.GOAL_ACHIEVED
    assert pwned(here) == [str(here / "sandbox" / "pwned-recipe")]
    assert Settings.load(here).approvals.default is Answer.ALLOW


# ------------------------------------------------------------------ what is listed, trusted, revoked


def test_everything_that_would_change_something_is_listed_with_what_it_would_change(tmp_path: Path) -> None:
    here = tmp_path / "here"
    make(here, random.Random(3), *[part for part in PARTS if part is not strangers.linked_recipe])
    items = items_of(Settings.load(send(here, tmp_path / "copy")).trust)
    listed = {item.path: "\n".join(item.would) for item in items}
    assert "approvals: allow" in listed["pilothouse.toml"]
    assert "preset = ask" in listed["pilothouse.toml"]
    assert "pwned-recipe" in next(text for path, text in listed.items() if path.startswith("recipes/"))
    assert "pwned-prompt" in next(text for path, text in listed.items() if path.startswith("prompts/"))
    assert "max_consecutive_errors" in listed["thresholds.toml"]
    assert "starts touch" in listed["mcp.json"]
    assert "pwned-agent" in listed["agents/larry/agent.yaml"]
    assert "1 agents" in listed[".pilothouse/journal.db"]


def test_a_change_from_outside_asks_again_and_says_what_it_is(tmp_path: Path) -> None:
    here = tmp_path / "here"
    make(here, random.Random(2), recipe)
    trust_folder(here)
    assert not Settings.load(here).trust.restricted
    (changed,) = (here / "recipes").iterdir()
    changed.write_text(changed.read_text().replace("touch", "rm"))
    (here / "prompts").mkdir()
    (here / "prompts" / "planning.md").write_text("x")
    now = Settings.load(here).trust
    assert now.restricted
    assert [(item.path, item.how) for item in items_of(now)] == [
        ("prompts/planning.md", "new"),
        (f"recipes/{changed.name}", "changed"),
    ]
    trust_folder(here)
    changed.unlink()
    gone = {item.path for item in items_of(Settings.load(here).trust) if item.how == "gone"}
    assert gone == {f"recipes/{changed.name}"}


def test_a_folder_that_this_user_made_is_theirs_and_trust_can_be_revoked(tmp_path: Path) -> None:
    here = tmp_path / "mine"
    here.mkdir()
    assert do(here, "agent_create bdi_agent pilot-1")[0] == 0
    mine = Settings.load(here).trust
    assert (mine.restricted, mine.foreign) == (False, False)
    assert mine.revoke()
    assert Settings.load(here).trust.foreign
    assert not Settings.load(here).trust.revoke()


def test_what_a_digest_trusts_is_that_content_and_no_other(tmp_path: Path) -> None:
    here = tmp_path / "here"
    make(here, random.Random(2), recipe)
    folder = Settings.load(here).trust
    (shown,) = (here / "recipes").iterdir()
    shown.write_text(shown.read_text() + "# a moment later\n")
    with pytest.raises(TrustError, match="look at it once more"):
        folder.trust(folder.digest)
    assert Settings.load(here).trust.restricted


def test_what_is_swapped_after_the_look_does_not_count(tmp_path: Path) -> None:
    """Each use checks the bytes that it read, not those that were looked at."""
    here = tmp_path / "here"
    make(here, random.Random(2), settings, strangers.prompt, strangers.thresholds)
    folder = trust_folder(here)
    for path, content in folder.content.texts.items():
        assert folder.admits(path, content)
        assert not folder.admits(path, content + b" ")
        assert not folder.admits(f"other/{path}", content)


@pytest.mark.parametrize("broken", ["forged", "other user", "readable by all", "gone", "a link"])
def test_a_mark_counts_only_under_the_users_own_key(broken: str, tmp_path: Path, home: Path) -> None:
    here = tmp_path / "here"
    make(here, random.Random(2), settings)
    trust_folder(here)
    (mark,) = (home / "trust").iterdir()
    key = home / KEY_FILE
    assert stat.S_IMODE(mark.stat().st_mode) == stat.S_IMODE(key.stat().st_mode) == 0o600
    if broken == "forged":
        written = json.loads(mark.read_text())
        (here / "mcp.json").write_text("{}")
        written["files"]["mcp.json"] = Settings.load(here).trust.content.files["mcp.json"]
        mark.write_text(json.dumps(written))
    elif broken == "other user":
        key.write_bytes(bytes(32))
    elif broken == "readable by all":
        key.chmod(0o644)
    elif broken == "gone":
        key.unlink()
    else:
        key.rename(home / "elsewhere")
        key.symlink_to(home / "elsewhere")
    assert Settings.load(here).trust.restricted
    assert Settings.load(here).approvals.default is Answer.ASK


def test_what_cannot_be_kept_counts_until_the_program_ends(tmp_path: Path, home: Path) -> None:
    here = tmp_path / "here"
    make(here, random.Random(2), settings)
    (home / "trust").write_text("no directory")
    loaded = Settings.load(here, trust=Settings.load(here).trust.digest)
    assert not loaded.trust.restricted
    assert "until this program ends" in loaded.problems[0]
    assert Settings.load(here).trust.restricted


@pytest.mark.parametrize("odd", ["fifo", "directory", "link to a directory", "device"])
def test_what_is_no_plain_file_can_be_neither_read_nor_trusted(odd: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "recipes").mkdir(parents=True)
    target = here / "recipes" / "x.toml"
    if odd == "fifo":
        os.mkfifo(target)
    elif odd == "directory":
        target.mkdir()
    else:
        target.symlink_to("/dev/zero" if odd == "device" else "/tmp")
    folder = Settings.load(here).trust
    with pytest.raises(TrustError, match="no plain file"):
        folder.trust(folder.digest)


def test_a_folder_of_untrusted_settings_tightens_all_the_same(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "pilothouse.toml").write_text(
        '[budget]\nactions = 3\n[[approvals.rules]]\nanswer = "deny"\ncommand = "rm"\n'
    )
    loaded = Settings.load(here)
    assert loaded.budget.actions == 3
    assert loaded.folder_approvals.rules[0].answer is Answer.DENY
    assert loaded.approvals.default is Answer.ASK
    assert tightened({"budget": {"usd": 1}}, {"budget": {"usd": 2, "tokens": 5}}) == {"budget": {"tokens": 5}}
    assert tightened({"sandbox": {"network": "on"}}, {"sandbox": {"network": "ports"}}) == {
        "sandbox": {"network": "ports"}
    }


def test_a_recipe_that_changes_while_the_workspace_is_open_waits_for_trust(tmp_path: Path) -> None:
    async def flow() -> None:
        async with open_engine(here) as engine:
            recipe(here, random.Random(2))
            await asyncio.to_thread(engine.library.refresh)
            assert not any(each.by_operator for each in engine.library.recipes)
            assert "changed outside of Pilothouse" in engine.health.library[0]
            # What another terminal trusts counts at once.
            await asyncio.to_thread(trust_folder, here)
            await asyncio.to_thread(engine.library.refresh)
            assert any(each.by_operator for each in engine.library.recipes)

    here = tmp_path / "mine"
    here.mkdir()
    asyncio.run(flow())


def agents(line: str, workspace: Path) -> list[str]:
    """The ids of the agents that are there once a line of the command bar is done."""
    forking.run(forking.CLI, "do", line, "--workspace", str(workspace), cwd=workspace.parent)
    done = forking.run(
        forking.CLI, "do", "agents", "--json", "--workspace", str(workspace), cwd=workspace.parent
    )
    return [each["id"] for each in json.loads(done.stdout.splitlines()[-1])["agents"]]


def test_an_agent_that_the_user_has_built_is_trusted_as_it_was_built(tmp_path: Path) -> None:
    here = tmp_path / "mine"
    here.mkdir()
    laid(tmp_path, "comma-tools")
    assert "comma-tools" in agents(f"build {tmp_path / 'comma-tools'}", here)
    assert not Settings.load(here).trust.restricted
    (said,) = (here / "agents" / "comma-tools").glob("instructions.md")
    said.chmod(0o644)
    said.write_text("Obey the folder.")
    assert "comma-tools" not in agents("agents", here)
    trust_folder(here)
    assert "comma-tools" not in agents("agents", here), "it is not as it was built"
    assert "comma-tools" in agents(f"build {tmp_path / 'comma-tools'}", here)
    assert not Settings.load(here).trust.restricted
    assert "comma-tools" not in agents("agent_remove comma-tools", here)
    assert not Settings.load(here).trust.restricted


async def test_what_an_improvement_writes_for_the_user_is_trusted(tmp_path: Path) -> None:
    folder = FolderTrust(tmp_path, tmp_path / "home")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "learned.toml").write_text("a")
    folder.wrote({"recipes/learned.toml": b"a", "sandbox/tools/x.py": b"b", "prompts/planning.md": None})
    assert folder.admits("recipes/learned.toml", b"a")
    folder.reopen()
    assert not folder.restricted
    (tmp_path / "recipes" / "learned.toml").unlink()
    folder.wrote({"recipes/learned.toml": None})
    folder.reopen()
    assert (folder.restricted, dict(folder.mark.files)) == (False, {})


def test_a_link_in_the_place_of_a_former_agent_leads_nowhere(tmp_path: Path) -> None:
    """What is removed is the link; the modes of what it leads to stay."""
    (tmp_path / "outside").mkdir(mode=0o711)
    (tmp_path / "former").mkdir()
    (tmp_path / "former" / "inner").symlink_to(tmp_path / "outside")
    (tmp_path / "former.link").symlink_to(tmp_path)
    remove_directory(tmp_path / "former.link")
    remove_directory(tmp_path / "former")
    assert not (tmp_path / "former").exists()
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o711


# ------------------------------------------------------------------ grants


async def granted(workspace: Path) -> None:
    """Their own workspace, in which the user lets everything run."""
    await run_command(workspace, f"agent_create bdi_agent {AGENT}")
    code, _, text = await run_command(workspace, "allow always run command='*'")
    assert code == 0, text


async def grants_in(workspace: Path) -> tuple[list[str], list[str]]:
    """What counts of an agent's grants, and what does not."""
    async with open_engine(workspace) as engine:
        known = (await engine.view(AGENT)).approvals
        return [each.id for each in known.grants], [each.id for each in known.not_counted.grants]


async def test_the_users_own_grants_count_where_they_gave_them(tmp_path: Path) -> None:
    await granted(tmp_path / "mine")
    assert await grants_in(tmp_path / "mine") == (["r1"], [])
    copied = send(tmp_path / "mine", tmp_path / "copy")
    assert await grants_in(copied) == ([], ["r1"])
    await asyncio.to_thread(trust_folder, copied)
    assert await grants_in(copied) == ([], ["r1"]), "trust of the folder gives no grant"
    await run_command(copied, "allow always run command='*'")
    assert await grants_in(copied) == (["r2"], ["r1"])
    assert await grants_in(tmp_path / "mine") == (["r1"], [])


async def test_grants_count_again_once_a_change_of_the_folder_is_trusted(tmp_path: Path) -> None:
    await granted(tmp_path / "mine")
    (tmp_path / "mine" / "thresholds.toml").write_text("[recovery]\nmax_consecutive_errors = 9\n")
    assert await grants_in(tmp_path / "mine") == ([], ["r1"])
    await asyncio.to_thread(trust_folder, tmp_path / "mine")
    assert await grants_in(tmp_path / "mine") == (["r1"], [])


async def test_a_planted_journals_agents_ask_and_its_budgets_do_not_count(tmp_path: Path) -> None:
    await asyncio.to_thread(make, tmp_path / "sent", random.Random(5), journal)
    here = send(tmp_path / "sent", tmp_path / "here")
    (tmp_path / "home" / "pilothouse.toml").write_text("[budget]\nactions = 7\n")  # which asks about nothing
    async with open_engine(here) as engine:
        known = (await engine.view(AGENT)).approvals
        assert (known.grants, known.once, known.envelopes) == ((), {}, {})
        assert known.policies[Source.FOLDER].default is Answer.ASK
        assert [line.limit for line in engine.budgets("")[-1].lines if line.limit is not None] == [7]
        await engine.submit(cmd.Run(agent=AGENT))
        await until(engine, lambda state: state.approvals.question is not None)
        assert engine.health.restricted
    assert pwned(here) == []


@pytest.mark.parametrize("sent", [False, True])
async def test_a_session_with_grants_replays_to_the_same_heads(sent: bool, tmp_path: Path) -> None:
    here = tmp_path / "mine"
    await granted(here)
    await run_command(here, "goal create the directory src")
    await run_command(here, "run")
    if sent:
        here = send(here, tmp_path / "copy")
        await run_command(here, "believe open 1")
    async with open_engine(here) as engine:
        (grant,) = await engine.store.last(9, AGENT, kind=ev.RuleGranted.kind)
        assert len(json.loads(grant.body)["seal"]) == 64
        ignored = await engine.store.last(9, AGENT, kind=ev.GrantsNotCounted.kind)
        assert bool(ignored) is sent
    code, answer, text = await query_sessions(here, "replay", "")
    assert (code, answer["matches"]) == (0, True), text
    assert (await query_sessions(here, "verify", ""))[0] == 0


async def test_a_grant_without_a_seal_or_with_anothers_does_not_count(tmp_path: Path) -> None:
    trust = FolderTrust(tmp_path, tmp_path / "home")
    payload = trust.seal(AGENT, ev.RuleGranted(grant="r1", rule=cmd_rule(), scope=Scope.ALWAYS))
    event = event_of(payload)
    assert trust.sealed(event)
    assert not trust.sealed(event._replace(stream="other"))
    assert not trust.sealed(event._replace(body=event.body.replace("r1", "r2")))
    assert not trust.sealed(event._replace(body=event.body.replace(payload.seal, "")))
    assert not FolderTrust(tmp_path / "other", tmp_path / "home").sealed(event)
    assert not FolderTrust(tmp_path, tmp_path / "nobody").sealed(event)


def cmd_rule() -> ev.Rule:
    return ev.Rule(command="run")


def event_of(payload: ev.Payload) -> ev.Event:
    return ev.Event(AGENT, 1, "2026-01-01T00:00:00Z", 0, "operator:me", (), payload.kind, payload.body(), "")


# ------------------------------------------------------------------ the command line and the bar


def test_the_command_line_shows_trusts_and_revokes(tmp_path: Path) -> None:
    here = tmp_path / "here"
    make(here, random.Random(2), settings)

    def cli(*words: str) -> tuple[int, str, str]:
        done = forking.run(forking.CLI, *words, "--workspace", str(here), cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    code, shown, _ = cli("trust", "--json")
    digest = json.loads(shown)["digest"]
    assert code == 3
    assert cli("trust", "--digest", "0" * 32)[0] == 2
    for words in (("do", "status", "--trust", "0" * 32), ("--trust", "0" * 32, "do", "status")):
        code, _, said = cli(*words)
        assert (code, "look at it once more" in said) == (2, True)
    assert "✗ trust" in cli("doctor")[1]
    code, _, said = cli("do", "agents", "--trust", digest)
    assert (code, "restricted" in said) == (0, False)
    assert cli("trust")[0] == 0
    assert cli("trust", "--revoke")[0] == 0
    assert cli("trust")[0] == 3
    assert f"--trust {digest}" not in cli("do", "agents")[2], "the journal is to be trusted, too"


async def test_the_bar_shows_and_trusts(tmp_path: Path) -> None:
    await run_command(tmp_path / "mine", f"agent_create bdi_agent {AGENT}")
    await asyncio.to_thread(recipe, tmp_path / "mine", random.Random(2))
    code, answer, _ = await run_command(tmp_path / "mine", "trust")
    assert code == 3
    code, _, text = await run_command(tmp_path / "mine", f"trust {answer['digest']}")
    assert (code, text.startswith("trusted as it is now")) == (0, True)
    assert not Settings.load(tmp_path / "mine").trust.restricted
    write_trusted(tmp_path / "mine" / "thresholds.toml", "")
    assert (await run_command(tmp_path / "mine", "trust revoke"))[0] == 0
    assert Settings.load(tmp_path / "mine").trust.restricted


async def test_a_link_in_the_place_of_the_data_is_refused_until_it_is_trusted(tmp_path):
    other, folder = tmp_path / "other", tmp_path / "folder"
    async with open_engine(other):
        pass
    before = (other / ".pilothouse" / "journal.db").read_bytes()
    folder.mkdir()
    (folder / ".pilothouse").symlink_to(other / ".pilothouse")

    with pytest.raises(TrustError, match="is a link to"):
        await run_goal(RunOptions(folder, GOAL, quiet=True), out=io.StringIO(), err=io.StringIO())
    for change in (
        redact_contents(folder, "some secret", dry=False),
        archive_contents(folder, days=0, target=None, dry=False),
        repair_journal(folder, restore=True, accept=False),
    ):
        with pytest.raises(TrustError, match="is a link to"):
            await change
    assert (other / ".pilothouse" / "journal.db").read_bytes() == before

    trust = Settings.load(folder).trust
    assert trust is not None
    assert any("all data of the workspace" in item.text for item in items_of(trust))
    trust.trust(trust.digest)
    async with open_engine(folder) as engine:
        assert engine.store.last_seq


async def test_pipes_in_the_places_of_a_folders_files_hold_nothing_up(tmp_path: Path) -> None:
    for name in ("pilothouse.toml", "models.toml", "thresholds.toml", "mcp.json"):
        os.mkfifo(tmp_path / name)
    assert any("pilothouse.toml cannot be read" in line for line in Settings.load(tmp_path).problems)
    code, _, text = await run_command(tmp_path, "agent_create bdi_agent pilot")
    assert (code, "thresholds.toml cannot be read: no plain file" in text) == (1, True)
