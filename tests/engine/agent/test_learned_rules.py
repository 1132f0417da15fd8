"""Rules learned from the operator's answers: which are proposed, and what taking one up does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_flight import Flight, act, journal_holds_together, live_state_is_the_fold, python

from app.commands.command import Context
from app.commands.inbox import propose_rules
from engine.agent.shared import EngineConfig
from engine.agent.steering.learned_rules import AnsweredCall, ApprovalHistory
from engine.agent.steering.rules import PRESETS, rule_line, rule_text
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.actions import Reversibility
from engine.core.approvals import Answer, Call
from engine.core.trust import FolderTrust

UNDONE = {"undo": Reversibility.WORKSPACE, "changes": True}


def write(path: str) -> Call:
    return Call("simple_coder", "write", {"path": path, "content": path}, paths=(path,), **UNDONE)


def program(line: str) -> Call:
    return Call("simple_coder", "run", {"command": line}, undo=Reversibility.IRREVERSIBLE, line=line)


def learned(*answers: tuple[Call, Answer], needed: int = 3, own: bool = True) -> list[str]:
    history = ApprovalHistory(lambda _tool, _command: None)
    history.answers = [
        AnsweredCall(call, answer, f"pilot:{number}", own) for number, (call, answer) in enumerate(answers)
    ]
    return [rule_line(each.rule) for each in history.learn(needed)]


def allowed(*paths: str) -> list[tuple[Call, Answer]]:
    return [(write(path), Answer.ALLOW) for path in paths]


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (("a.py", "a.py", "a.py"), "a.py"),
        (("src/a.py", "src/b.py", "src/c.py"), "src/*.py"),
        (("src/a.py", "src/b.md", "src/c"), "src/*"),
        (("src/a.py", "src/x/b.md", "src/y/z/c"), "src/**"),
    ],
)
def test_the_narrowest_rule_for_three_equal_answers_is_proposed(paths: tuple[str, ...], pattern: str) -> None:
    assert learned(*allowed(*paths)) == [
        f"allow write paths='{pattern}' reversible=yes network=no"
    ] or learned(*allowed(*paths)) == [f"allow write paths={pattern} reversible=yes network=no"]


def test_too_few_answers_or_one_against_it_give_no_rule() -> None:
    assert not learned(*allowed("src/a.py", "src/b.py"))
    assert not learned(*allowed("a.py", "lib/b.md", "src/c"), needed=3), "no rule for all there is"
    against = (write("src/d.py"), Answer.DENY)
    assert not learned(*allowed("src/a.py", "src/b.py", "src/c.py"), against)


def test_a_contrary_answer_that_is_not_ones_own_still_speaks_against_a_rule() -> None:
    history = ApprovalHistory(lambda _tool, _command: None)
    history.answers = [
        *(AnsweredCall(write(f"src/{name}.py"), Answer.ALLOW, name) for name in "abc"),
        AnsweredCall(write("src/d.py"), Answer.DENY, "d", own=False),
    ]
    assert not history.learn(3)


def test_a_contrary_answer_leaves_a_narrower_rule() -> None:
    calls = [*allowed("src/a.py", "src/b.py", "src/c.py"), (write("src/x.sh"), Answer.DENY)]
    assert learned(*calls) == ["allow write paths=src/*.py reversible=yes network=no"]


def test_what_was_denied_is_proposed_to_be_denied_and_programs_too() -> None:
    pushes = [(program(f"git push origin {branch}"), Answer.DENY) for branch in "abc"]
    (rule,) = learned(*pushes)
    assert rule == "deny run command='git push origin *'"


def test_signs_of_patterns_in_names_are_taken_as_they_stand() -> None:
    (rule,) = learned(*allowed("a*/x.py", "a*/y.py", "a*/z.py"))
    assert "a[*]/" in rule


# ------------------------------------------------------------------ with an agent


@pytest.fixture
async def asking(tmp_path: Path, open_flight: Callable[..., Any]) -> Flight:
    made: Flight = await open_flight(tmp_path, config=EngineConfig(approvals=PRESETS["ask-changes"]))
    return made


async def answer_all(flight: Flight, *allow: bool) -> None:
    await flight.do(cmd.Run)
    for each in allow:
        state = await flight.until(lambda s: s.approvals.question)
        assert state.approvals.question is not None
        await flight.do(cmd.AnswerApproval, action=state.approvals.question.action, allow=each)
        action = state.approvals.question.action
        await flight.until(
            lambda s, a=action: s.approvals.question is None or s.approvals.question.action != a
        )


async def plan(flight: Flight, *actions: dict[str, Any]) -> None:
    await flight.do(cmd.Pause)
    await flight.plan(*actions)


async def ended(flight: Flight) -> None:
    await flight.until(lambda s: not s.open_goals)


def writes(*paths: str) -> list[dict[str, Any]]:
    return [act("write", path=path, content="1") for path in paths]


async def test_a_rule_is_proposed_taken_up_holds_and_is_revoked(asking: Flight) -> None:
    await plan(asking, *writes("src/a.py", "src/b.py", "src/c.py"), act("ls"))
    await answer_all(asking, True, True, True)
    await ended(asking)
    await asking.do(cmd.ProposeRules)
    (proposal,) = (await asking.state()).approvals.proposals
    assert rule_text(proposal.learned.rule) == "write paths=src/*.py reversible=yes network=no"
    assert (proposal.learned.hits, proposal.learned.misses, proposal.learned.calls) == (3, 0, 3)
    assert not (await asking.state()).approvals.grants, "nothing holds by itself"
    await asking.do(cmd.TakeRule, proposal=proposal.id)
    await plan(asking, *writes("src/d.py"))
    await asking.do(cmd.Run)
    await ended(asking)
    assert (asking.sandbox / "src/d.py").exists(), "it was not asked about"
    (grant,) = (await asking.state()).approvals.grants
    await asking.do(cmd.RevokeRule, grant=grant.id)
    await asking.do(cmd.ProposeRules)
    assert not (await asking.state()).approvals.proposals, "what was revoked needs new evidence too"
    await plan(asking, *writes("src/e.py"))
    await answer_all(asking, True)
    await ended(asking)
    await asking.do(cmd.ProposeRules)
    assert (await asking.state()).approvals.proposals[0].learned.hits == 4
    await live_state_is_the_fold(asking, "pilot")
    await journal_holds_together(asking.workspace)


async def test_a_declined_rule_comes_again_with_new_evidence_only(asking: Flight) -> None:
    await plan(asking, *writes("src/a.py", "src/b.py", "src/c.py"))
    await answer_all(asking, True, True, True)
    await ended(asking)
    await asking.do(cmd.ProposeRules)
    await asking.do(cmd.DeclineRule, proposal="l1")
    await asking.do(cmd.ProposeRules)
    assert not (await asking.state()).approvals.proposals
    await plan(asking, *writes("src/d.py"))
    await answer_all(asking, True)
    await ended(asking)
    await asking.do(cmd.ProposeRules)
    (proposal,) = (await asking.state()).approvals.proposals
    assert proposal.learned.hits == 4


async def test_what_cannot_be_undone_is_never_proposed_to_be_allowed(asking: Flight) -> None:
    await asking.plan(*[python("print(1)")] * 3)
    await answer_all(asking, True, True, True)
    await ended(asking)
    receipt = await asking.do(cmd.ProposeRules, needed=2)
    assert receipt.message == "your answers give no new rule"


async def test_a_deny_rule_that_was_taken_up_denies_and_the_answer_against_a_proposal_ends_it(
    asking: Flight,
) -> None:
    for path in ("db/a", "db/b", "db/c"):
        await plan(asking, *writes(path))
        await answer_all(asking, False)
        await asking.until(lambda s: s.intervention)
        await asking.do(cmd.AbortGoal, goal=(await asking.state()).open_goals[0].id)
    await asking.do(cmd.ProposeRules)
    (proposal,) = (await asking.state()).approvals.proposals
    assert rule_line(proposal.learned.rule) == "deny write paths=db/*"
    await plan(asking, *writes("db/d"))
    await answer_all(asking, True)
    await ended(asking)
    assert not (await asking.state()).approvals.proposals, "an answer was against it"
    closed = await asking.payloads(ev.ProposalClosed)
    assert closed[-1].reason.is_a("proposal.contradicted")


async def test_a_deny_rule_denies_what_a_grant_allows(asking: Flight) -> None:
    await plan(asking, *writes("db/a"))
    await answer_all(asking, False)
    await asking.until(lambda s: s.intervention)
    await asking.do(cmd.AbortGoal, goal=(await asking.state()).open_goals[0].id)
    await plan(asking, *writes("db/b"))
    await answer_all(asking, False)
    await asking.until(lambda s: s.intervention)
    await asking.do(cmd.AbortGoal, goal=(await asking.state()).open_goals[0].id)
    await asking.do(cmd.ProposeRules, needed=2)
    await asking.do(cmd.TakeRule, proposal="l1", scope="session")
    await asking.do(cmd.GrantRule, rule="write paths=**", scope="session")
    await plan(asking, *writes("db/c"))
    await asking.do(cmd.Run)
    state = await asking.until(lambda s: s.intervention)
    assert "denied by r1" in str(state.failures[-1].message)


async def test_what_is_given_with_the_command_teaches_nothing(asking: Flight) -> None:
    forged = {"rule": {"command": "*"}, "hits": 900}
    await asking.do(cmd.ProposeRules, learned=[forged])
    assert not (await asking.state()).approvals.proposals


async def test_answers_that_another_user_gave_teach_nothing(
    tmp_path: Path, open_flight: Callable[..., Any]
) -> None:
    """A folder comes with a journal in which somebody said yes to everything."""
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir(mode=0o700)
    other.mkdir(mode=0o700)
    folder = tmp_path / "folder"
    folder.mkdir()
    theirs = EngineConfig(approvals=PRESETS["ask-changes"], trust=FolderTrust(folder, other))
    flight: Flight = await open_flight(folder, config=theirs)
    await flight.plan(*writes("src/a.py", "src/b.py", "src/c.py"))
    await answer_all(flight, True, True, True)
    await ended(flight)
    flight.config = EngineConfig(approvals=PRESETS["ask-changes"], trust=FolderTrust(folder, home))
    await flight.reopen()
    receipt = await flight.do(cmd.ProposeRules)
    assert receipt.message == "your answers give no new rule"


class Host:
    """Carries a line's command to a real engine."""

    operator = "operator"

    def __init__(self, flight: Flight) -> None:
        self.engine, self.context = flight.engine, Context(agent="pilot")

    async def submit(self, command: cmd.Command) -> tuple[int, dict[str, Any], str]:
        receipt = await self.engine.submit(command)
        return int(not receipt.ok), {"ok": receipt.ok}, receipt.message


async def test_the_list_says_how_each_rule_does(asking: Flight) -> None:
    await plan(asking, *writes("src/a.py", "src/b.py", "src/c.py"))
    await answer_all(asking, True, True, True)
    await ended(asking)
    code, answer, text = await propose_rules(Host(asking), {"needed": 3})
    assert code == 0
    (row,) = answer["rules"]
    assert (row["id"], row["answer"], row["hits"], row["calls"]) == ("l1", "allow", 3, 3)
    assert "3 answers alike, none against it, 0 like them left to you; about 3 calls so far" in text
    assert "rules take l1" in text
