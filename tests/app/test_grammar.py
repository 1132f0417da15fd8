"""The command bar's words: what each line means, and what is said when it means nothing."""

from __future__ import annotations

from typing import Any

import pytest

from app.commands.command import Context, GrammarError, Show, late
from app.commands.registry import as_command, built_in_commands, complete, find_command, read_line
from app.commands.time import ForkRequest, RewindRequest
from engine.core import campaigns as mm
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.actions import SandboxSession
from engine.core.agents import DistrustServer, TrustServer
from engine.core.budgets import BudgetKind
from engine.core.goals import Goal
from engine.core.metacognition import BackgroundJob, MetaState, MetaTask
from engine.core.plan import Plan, PlanStep
from engine.core.sandbox import Handover, Job, OfferedBelief
from engine.core.state import AgentState
from engine.planning.library.missions import load_missions
from engine.tools.simple_coder_commands import COMMANDS
from tests.app.recording_host import meaning


@pytest.fixture
def context() -> Context:
    state = AgentState(
        agent_id="pilot",
        goals={"g1": Goal("g1", "first"), "g2": Goal("g2", "second")},
        current_goal="g2",
        jobs={"j2": Job("j2", "make", ended="exit"), "j3": Job("j3", "python -m http.server")},
        meta=MetaState(running=(BackgroundJob("bg3", MetaTask.REFLECT, "7 successes", 7),)),
        plans={"g2": Plan("p1", "g2", steps=(PlanStep("s7", "list"), PlanStep("s8", "read")))},
    )
    return Context(
        agent="pilot",
        state=state,
        agents=("pilot", "other"),
        missions=lambda: ("first-flight",),
        themes=("dusk",),
        examples=lambda: ("list the files in src", "read notes.txt"),
        spec_of=COMMANDS.get,
    )


def _pilot(kind: type[cmd.Command], **fields: Any) -> cmd.Command:
    return kind(**{"agent": "pilot", **fields})


MASTERMIND = [
    ("EVOLVE  make  'it' Better ", mm.StartJob(verb="evolve", argument="make  'it' Better")),
    (
        "evolve --seed 7 --seconds=60 --apply -- --odd start",
        mm.StartJob(verb="evolve", argument="--odd start", seed=7, seconds=60, options={"apply": True}),
    ),
    ("improve the base generator", mm.StartJob(verb="coord_improve", argument="the base generator")),
    (
        "coord_improve --component sample/stats.py --usd 0.5 stats",
        mm.StartJob(verb="coord_improve", argument="stats", component="sample/stats.py", usd=0.5),
    ),
    ("campaign", ("campaign", "")),
    ("campaigns 2", ("campaign", "k2")),
    ("campaign_page 2 out page.html", ("campaign_page", "k2", "out page.html")),
    ("campaign_resume K2", mm.StartJob(verb="campaign_resume", argument="k2")),
    ("coord_shadow k2", mm.StartJob(verb="coord_shadow", argument="k2")),
    ("coord_apply k2", mm.ApplyCandidate(campaign="k2")),
    ("coord_decline 2 too  much", mm.DeclineCampaign(campaign="k2", reason="too  much")),
    ("rollback", mm.RollBack()),
    ("coord_rollback k3", mm.RollBack(campaign="k3")),
    ("analyze_system", mm.StartJob(verb="coord_analyze")),
    ("backlog", ("backlog",)),
    ("suggest !8 sample be faster", mm.AddItem(target="sample", suggestion="be faster", priority=8)),
    ("process_backlog", mm.StartJob(verb="coord_process_backlog")),
    (
        "coord_process_backlog --candidates 3 auto",
        mm.StartJob(verb="coord_process_backlog", argument="auto", auto=True, candidates=3),
    ),
    ("coord_approve 3fa2", mm.SettleItem(item="3fa2", approve=True)),
    ("coord_reject i3 no  use", mm.SettleItem(item="i3", approve=False, reason="no  use")),
    ("mastermind_status", ("mastermind_status",)),
    ("mastermind_jobs", ("jobs",)),
    ("job_cancel 4", mm.CancelJob(job="j4")),
    ("deploy make tea", mm.StartJob(verb="deploy", argument="make tea")),
    (
        "deploy --approve 12ab make tea",
        mm.StartJob(verb="deploy", argument="make tea", options={"approved": "12ab"}),
    ),
]
"""What begins work on the system itself; verbs in any case, arguments as they stand ."""

CREW = [
    ("fleet", ("fleet", "")),
    ("handoffs", ("handoffs", "")),
    ("agents --all", ("agents", "--all")),
    ("delegate !3 MINTO structure it", cc.Delegate(to="minto", task="structure it", priority=3)),
    ("transfer larry he knows", cc.Transfer(to="larry", reason="he knows")),
    ("take back", cc.TakeBack()),
    ("say hello", cc.Say(text="hello")),
    ("ideas larry", ("ideas", "larry")),
    ("parallel a,b look", cc.Parallel(to=("a", "b"), task="look")),
    ("sequence a, b look", cc.Sequence(to=("a", "b"), task="look")),
    ('debate "go on" for=a against=b rounds=1', cc.Debate(motion="go on", pro="a", con="b", rounds=1)),
    ("guided start wizard a canvas", cc.Delegate(to="wizard", task="a canvas")),
    ("select validate it", ("select", "validate it")),
    ("answer hr-1 2 mine", cc.AnswerRequest(request="hr-1", option="2", text="mine")),
    ("dismiss hr-1 not now", cc.DismissRequest(request="hr-1", reason="not now")),
    ("takeover h-12 by hand", cc.TakeOver(handoff="h-12", text="by hand")),
    ("agent_enable pws", cc.EnableAgent(who="pws")),
    ("agent_disable pws", cc.EnableAgent(who="pws", enabled=False)),
    ("agent_remove pws", cc.RemoveAgent(who="pws")),
    ("build ~/skills/a", mm.StartJob(verb="agent_build", argument="~/skills/a")),
    (
        "build my skills/a --trust --type role",
        mm.StartJob(verb="agent_build", argument="my skills/a", options={"trust": True, "type": "role"}),
    ),
    (
        "agent_create ./a --dry-run",
        mm.StartJob(verb="agent_build", argument="./a", options={"dry-run": True}),
    ),
    ("cancel h-12 too slow", cc.CancelHandoff(handoff="h-12", reason="too slow")),
    ("retry h-12", cc.RetryHandoff(handoff="h-12")),
    ("priority h-12 3", cc.SetPriority(handoff="h-12", priority=3)),
    ("pause h-12", cc.PauseHandoff(handoff="h-12")),
    ("resume h-12", cc.ResumeHandoff(handoff="h-12")),
]
"""What is asked of a crew that is not open yet: its manager knows the ids."""

LINES = [
    *CREW,
    ("goal list the files", _pilot(cmd.AdoptGoal, text="list the files")),
    ("GOAL  Write 'A  b\"' to X.txt", _pilot(cmd.AdoptGoal, text="Write 'A  b\"' to X.txt")),
    ("goal !5 go up", _pilot(cmd.AdoptGoal, text="go up", priority=5)),
    ("goal -p -2 go up", _pilot(cmd.AdoptGoal, text="go up", priority=-2)),
    ("goal\tgo up", _pilot(cmd.AdoptGoal, text="go up")),
    ("goal one\n- two", _pilot(cmd.AdoptGoal, text="one\n- two")),
    (
        "goal make a.txt || it is there || it says x",
        _pilot(cmd.AdoptGoal, text="make a.txt", criteria=("it is there", "it says x")),
    ),
    ("budget usd $2.50 tokens 100,000", _pilot(cmd.SetBudget, usd=2.5, tokens=100_000, keep=True)),
    (
        "budget goal actions +5 time 2m",
        _pilot(cmd.SetBudget, goal="g2", actions=5, seconds=120, keep=True, more=("actions",)),
    ),
    ("budget goal G1 usual", _pilot(cmd.SetBudget, goal="g1")),
    (
        "budget workspace calls none money 9",
        cmd.SetWorkspaceBudget(usd=9, keep=True, lifted=(BudgetKind.CALLS,)),
    ),
    ("budget", ("budgets", None)),
    ("budget goal g1", ("budgets", "g1")),
    ("budget usual", _pilot(cmd.SetBudget)),
    ("search pump 'not' \"so dry\"", ("search", "pump 'not' \"so dry\"")),
    ("find pump", ("search", "pump")),
    ("rewind 31", ("rewind", RewindRequest("31"))),
    ("rewind files -40 src --yes", ("rewind", RewindRequest("-40", "files", ("src",), yes=True))),
    (
        "fork 31 x5 with belief tests_green=true",
        ("fork", ForkRequest("31", times=5, beliefs=(("tests_green", True),))),
    ),
    ("adopt pilot-2 --yes", ("adopt", "pilot-2")),
    ("outcomes", ("outcomes", None)),
    ("undo", ("undo", False)),
    ("redo --dry-run", ("undo", True)),
    ("recap", ("recap", "")),
    ("recap 12", ("recap", "12")),
    ("drop", _pilot(cmd.DropGoal, goal="g2")),
    ("drop 1", _pilot(cmd.DropGoal, goal="g1")),
    ("abort G1", _pilot(cmd.AbortGoal, goal="g1")),
    ("reword g1 go  up", _pilot(cmd.ChangeGoal, goal="g1", text="go  up")),
    ("subgoal g1 list  the files", _pilot(cmd.PushGoal, goal="g1", text="list  the files")),
    ("under g2 1", _pilot(cmd.MoveGoal, goal="g2", parent="g1")),
    ("under g2 none", _pilot(cmd.MoveGoal, goal="g2")),
    ("priority 1 9", _pilot(cmd.ChangeGoal, goal="g1", priority=9)),
    ("mission first-flight", _pilot(cmd.AdoptGoal, text=load_missions()["first-flight"].goal)),
    ("run", _pilot(cmd.Run)),
    ("run 3", _pilot(cmd.Run, max_loops=3)),
    ("until", _pilot(cmd.Run, until="g2")),
    ("pause", _pilot(cmd.Pause)),
    ("Step", _pilot(cmd.Step)),
    ("stop", _pilot(cmd.Stop)),
    ("stop freeze", _pilot(cmd.Stop, grade="freeze")),
    ("stop HOLD children", _pilot(cmd.Stop, grade="hold", scope="children")),
    ("stop all", _pilot(cmd.Stop, scope="all")),
    ("thaw", _pilot(cmd.Thaw)),
    ("control ask", _pilot(cmd.AskControl)),
    ("control take", _pilot(cmd.TakeControl)),
    ("control give ann", _pilot(cmd.GiveControl, to="ann")),
    ("control free", _pilot(cmd.FreeControl)),
    ("thaw all", _pilot(cmd.Thaw, scope="all")),
    ("inbox", ("inbox",)),
    ("approve", _pilot(cmd.AnswerApproval, allow=True)),
    ("approve a3 always", _pilot(cmd.AnswerApproval, action="a3", allow=True, scope="always")),
    (
        "approve session write paths=src/**",
        _pilot(cmd.AnswerApproval, allow=True, scope="session", rule="write paths=src/**"),
    ),
    ('approve a3 {"path": "x"}', _pilot(cmd.AnswerApproval, action="a3", allow=True, args={"path": "x"})),
    ("approve all write paths=src/**", ("approve", None, "write paths=src/**")),
    ("deny a3 not  there", _pilot(cmd.AnswerApproval, action="a3", allow=False, reason="not  there")),
    ("allow always run command='git *'", _pilot(cmd.GrantRule, scope="always", rule="run command='git *'")),
    ("approvals", ("approvals",)),
    ("approvals ask-changes", _pilot(cmd.SetApprovals, policy="ask-changes")),
    ("rules take l1 session", _pilot(cmd.TakeRule, proposal="l1", scope="session")),
    ("rules take l2", _pilot(cmd.TakeRule, proposal="l2")),
    ("rules decline l1", _pilot(cmd.DeclineRule, proposal="l1")),
    ("revoke r2", _pilot(cmd.RevokeRule, grant="r2")),
    ("accept", _pilot(cmd.AcceptPlan, goal="g2")),
    ("accept g1 hosts=none spend=2", _pilot(cmd.AcceptPlan, goal="g1", envelope={"hosts": [], "spend": 2.0})),
    ("envelope g1", ("envelope", "g1")),
    ("reject g1 not so", _pilot(cmd.RejectReplan, goal="g1", reason="not so")),
    ("intervene", _pilot(cmd.Intervene)),
    ("hand_back", _pilot(cmd.HandBack)),
    ("take_shell", _pilot(cmd.TakeShell)),
    ("return_shell", _pilot(cmd.ReturnShell)),
    ("return_shell mended  the config", _pilot(cmd.ReturnShell, note="mended  the config")),
    ("settle", _pilot(cmd.SettleChanges)),
    ("settle all", _pilot(cmd.SettleChanges)),
    ("settle none", _pilot(cmd.SettleChanges, accept=(), follow=False)),
    ("settle files.added", _pilot(cmd.SettleChanges, accept=("files.added",), follow=False)),
    ("settle files.added place", _pilot(cmd.SettleChanges, accept=("files.added",))),
    ("plan list the files", _pilot(cmd.ReplacePlan, goal="g2", plan="list the files")),
    ("edit", None),
    ("edit s8", ("edit_step", "s8")),
    (
        "edit 8 write a.txt 'two words'",
        _pilot(cmd.EditStep, step="s8", command="write", args={"path": "a.txt", "content": "two words"}),
    ),
    ('edit this {"args": {"path": "x"}}', _pilot(cmd.EditStep, step="s7", args={"path": "x"})),
    (
        "insert before S8 mkdir new",
        _pilot(cmd.InsertStep, before="s8", command="mkdir", args={"path": "new"}, description="mkdir new"),
    ),
    ("insert ls", _pilot(cmd.InsertStep, command="ls", description="ls")),
    ("delete s8", _pilot(cmd.DeleteStep, step="s8")),
    ("move s8 up", _pilot(cmd.MoveStep, step="s8", by=-1)),
    ("skip", _pilot(cmd.SkipStep, step="s7")),
    ("skip s8 not  needed", _pilot(cmd.SkipStep, step="s8", reason="not  needed")),
    ("retry", _pilot(cmd.RetryStep, step="s7")),
    ("unsaved", _pilot(cmd.WaiveSnapshot, step="s7")),
    ("result s8 it is  done", _pilot(cmd.GiveResult, step="s8", result="it is  done")),
    ("break", _pilot(cmd.SetBreakpoint, step="s7")),
    ("unbreak 8", _pilot(cmd.SetBreakpoint, step="s8", on=False)),
    ("step over", _pilot(cmd.Step, scope="over")),
    ("step all over", ("step_all", "over")),
    ("break goal failed  fix it", _pilot(cmd.SetBreak, line="goal failed  fix it")),
    (
        "break tool write path=*.toml when errors > 2 once",
        _pilot(cmd.SetBreak, line="tool write path=*.toml when errors > 2 once"),
    ),
    ("break step s7", _pilot(cmd.SetBreakpoint, step="s7")),
    ("break step s7 after 2", _pilot(cmd.SetBreak, line="step s7 after 2")),
    ("break dry error * last 500", ("dry_run", "error * last 500")),
    ("break off b1", _pilot(cmd.ChangeBreak, breakpoint="b1", enabled=False)),
    ("unbreak b2", _pilot(cmd.ChangeBreak, breakpoint="b2", cleared=True)),
    ("breaks", ("breakpoints",)),
    ("break off b1", _pilot(cmd.ChangeBreak, breakpoint="b1", enabled=False)),
    ("break clear b1", _pilot(cmd.ChangeBreak, breakpoint="b1", cleared=True)),
    ("intention 2 drop  no use", _pilot(cmd.SteerIntention, intention=2, how="drop", reason="no use")),
    ("intention suspend 3", _pilot(cmd.SteerIntention, intention=3, how="suspend")),
    ("trace on", _pilot(cmd.SetTracing, on=True)),
    ("plans", ("plans",)),
    (
        "plans reject q2 too  risky",
        _pilot(cmd.DecidePlans, generation="q2", decision="reject", text="too  risky"),
    ),
    ("world", ("world",)),
    ("reflect", _pilot(cmd.ForceMeta, task="reflect")),
    ("reflect Promote", _pilot(cmd.ForceMeta, task="promote")),
    ("consolidate", _pilot(cmd.ForceMeta, task="consolidate")),
    ("veto consolidate", _pilot(cmd.VetoMeta, task="consolidate")),
    ("veto link off", _pilot(cmd.VetoMeta, task="link", lifted=True)),
    ("veto bg3", _pilot(cmd.CancelBackground, job="bg3")),
    ("cancel", _pilot(cmd.CancelBackground, job="bg3")),
    ("cancel bg7", _pilot(cmd.CancelBackground, job="bg7")),
    (
        "configure recovery.max_consecutive_errors=5",
        _pilot(cmd.ConfigureAgent, settings={"recovery": {"max_consecutive_errors": 5}}),
    ),
    ("thresholds 9", _pilot(cmd.SetThresholds, reflection=9)),
    ("thresholds 9 14", _pilot(cmd.SetThresholds, reflection=9, consolidation=14)),
    ("thresholds consolidation 14", _pilot(cmd.SetThresholds, consolidation=14)),
    ("guide use  the tests", _pilot(cmd.Guide, text="use  the tests")),
    ("guide now: use  the tests", _pilot(cmd.Guide, text="use  the tests", when="now")),
    ("note it  went wrong here", _pilot(cmd.AddNote, text="it  went wrong here")),
    ("notes", ("notes",)),
    ("notices", ("notices",)),
    ("believe sky blue", _pilot(cmd.Believe, key="sky", value="blue")),
    ("believe n=[1, 2.5, null]", _pilot(cmd.Believe, key="n", value=[1, 2.5, None])),
    ("forget sky", _pilot(cmd.Forget, key="sky")),
    ("! ls src", _pilot(cmd.CallTool, command="ls", args={"path": "src"})),
    (
        "!run python -c 'print(1)'",
        _pilot(cmd.CallTool, command="run", args={"command": "python -c 'print(1)'"}),
    ),
    (
        "! start python -m http.server",
        _pilot(cmd.CallTool, command="start", args={"command": "python -m http.server"}),
    ),
    ("! job_output j3 50", _pilot(cmd.CallTool, command="job_output", args={"job": "j3", "lines": 50})),
    ("jobs", _pilot(cmd.CallTool, command="jobs", args={})),
    ("stop_job", _pilot(cmd.StopJob, job="j3")),
    ("stop_job J4", _pilot(cmd.StopJob, job="j4")),
    ("agent_create bdi_agent two", ("agent_create", "bdi_agent two", None, None)),
    ("agent_create   bdi_agent    two  a  helper", ("agent_create", "bdi_agent two a  helper", None, None)),
    *MASTERMIND,
    ("agent_list", ("agent_list",)),
    ("agent_delete other", ("agent_delete", "other")),
    ("agent other", ("agent", "other")),
    ("status", ("status",)),
    ("policy", ("policy",)),
    ("trust", ("trust", None)),
    ("query ?p(X) & not q", ("query", "?p(X) & not q")),
    ("why", ("why", "", "backward")),
    ("why notes.txt wrong", ("why", "notes.txt", "wrong")),
    ("wrong a3 it misread the output", ("mark", "a3", "it misread the output", False)),
    ("right pilot-1:7", ("mark", "pilot-1:7", "", True)),
    ("retract a3 yes", ("retract", "a3")),
    ("drift g1", ("drift", "g1")),
    (
        "workflow w2 paused until the index is back",
        cmd.Remember(
            agent="pilot",
            verb="update_workflow_status",
            arguments={
                "workflow_id": "w2",
                "status": "paused",
                "completion_message": "until the index is back",
            },
        ),
    ),
    ("meta", ("meta",)),
    ("context", ("context",)),
    ("embedder minilm", ("embedder", "minilm", "")),
    ("memory slow index", ("memories", "slow index")),
    ("past 120", ("past", "120")),
    ("compare", ("compare", "")),
    ("compare pilot:3 now", ("compare", "pilot:3 now")),
    (
        "remember the index is slow",
        cmd.Remember(
            agent="pilot",
            verb="store_memory",
            arguments={
                "content": "the index is slow",
                "memory_type": "user_input",
                "memory_level": "semantic",
                "importance": 7.0,
            },
        ),
    ),
    ("pin m3", cmd.Remember(agent="pilot", verb="change_working_memory", arguments={"pin": ["m3"]})),
    ("unpin m3", cmd.Remember(agent="pilot", verb="change_working_memory", arguments={"unpin": ["m3"]})),
    ("restore_context a3", _pilot(cmd.RestoreContext, what="a3")),
    (
        "restore_context m3",
        cmd.Remember(agent="pilot", verb="change_working_memory", arguments={"pin": ["m3"]}),
    ),
    ("evict m3", cmd.Remember(agent="pilot", verb="change_working_memory", arguments={"evict": ["m3"]})),
    ("focus m3", cmd.Remember(agent="pilot", verb="focus_memory", arguments={"memory_id": "m3"})),
    (
        "important m3 8.5",
        cmd.Remember(agent="pilot", verb="update_memory", arguments={"memory_id": "m3", "importance": 8.5}),
    ),
    (
        "forget_memory m3 m4",
        cmd.Remember(agent="pilot", verb="forget_memories", arguments={"memory_ids": ["m3", "m4"]}),
    ),
    ("accept_tier Paths", cmd.AcceptTier(tier="PATHS")),
    ("network ports", cmd.GrantNetwork(network="ports")),
    ("mcp_trust files", TrustServer(server="files")),
    ("mcp_distrust files", DistrustServer(server="files")),
    ("theme dusk", ("theme", "dusk")),
    ("tour", ("tour", "")),
    ("tour off", ("tour", "off")),
    ("help", ("help", "")),
    ("? goal", ("help", "goal")),
    ("quit ", ("quit",)),
    (" exit", ("quit",)),
    ("q", ("quit",)),
]


@pytest.mark.parametrize(
    ("line", "meant"), [pair for pair in LINES if pair[1]], ids=lambda value: str(value)[:40]
)
def test_a_line_means_one_command(
    context: Context, line: str, meant: cmd.Command | tuple[object, ...]
) -> None:
    assert meaning(line, context) == meant


def test_every_command_is_tried_here_and_found_by_its_names() -> None:
    tried = {
        find_command(line.strip().split()[0] if not line.startswith("!") else "!").name for line, _ in LINES
    }
    assert tried == {command.name for command in built_in_commands()}
    for command in built_in_commands():
        for name in (command.name, *command.aliases):
            assert find_command(name.upper()) is command


def test_every_example_can_be_entered(context: Context) -> None:
    assert context.state is not None
    context.state.plans["g2"] = Plan("p1", "g2", steps=tuple(PlanStep(f"s{n}", "list") for n in range(3, 9)))
    for command in built_in_commands():
        for example in command.examples:
            assert find_command(example.split()[0]) is command
            read_line(example, context)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("create a directory called abc", "goal create a directory called abc"),
        ("  make a directory abc", "goal make a directory abc"),
        ("in sub, list the files", "goal in sub, list the files"),
        ("Make tests  faster in sample", "evolve Make tests  faster in sample"),
        *((line, line) for line in ("gaol x", "rum the tests", "agent_delte x", "zzzz", "", " ", "!ls x")),
        *((line, line) for line in ("GOAL x y", "delete the file", "evovle x", "/goal x y")),
    ],
)
def test_a_line_whose_first_word_is_no_command_and_no_slip_is_a_goal(line: str, meant: str) -> None:
    assert as_command(line) == meant


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "type a command"),
        ("budget goal g7 usd 1", "there is no goal 'g7'; goals: g1, g2"),
        ("budget usd 1 usd 2", "usd is given twice"),
        ("budget time 5d", "seconds: '5d' is no number that fits"),
        ("budget usd nan", "usd: a number from 0 to 1,000,000"),
        ("budget actions +1e3", "actions: '1e3' is no number that fits"),
        ("budget usd", "a kind and an amount are expected"),
        ("budget pounds 5", "'pounds' is no kind of budget"),
        ("budget calls many", "calls: 'many' is no number that fits"),
        ("budget usd -1", "usd"),
        ("   ", "type a command"),
        ("gaol x", "did you mean goal"),
        ("zzzz", "type help"),
        ("goal", "the goal's text is missing · usage: goal"),
        ("goal " + "x" * 8_001, "text: it should have at most 8000"),
        ("goal \udcff", "none that a text may have"),
        ("reword g1", "the new text is missing"),
        ("priority g1 high", "a whole number is expected"),
        ("priority g1 " + "9" * 5_000, "a whole number is expected"),
        ("run fast", "type: ! run"),
        ("run 0", "max_loops"),
        ("run ²", "a number of loops"),
        ("run " + "9" * 5_000, "a number of loops"),
        ("pause now", "'now' is too much"),
        ("plan", "is missing"),
        ("edit", "a step is missing"),
        ('edit s7 {"args"', "this is no JSON: column"),
        ('edit s7 {"colour": 1}', "colour"),
        ("edit s7 {" + '"a":[' * 100_000, "this is no JSON"),
        ("edit s7 write 'open", "quote is not closed"),
        ("insert", "is missing"),
        ("insert ls a b c", "ls takes path"),
        ("delete", "a step is missing"),
        ("delete s7 s8", "only a step is expected"),
        ("move s7 sideways", "move STEP up"),
        ("result s7", "the result is missing"),
        ("believe", "a key is missing"),
        ("believe k", "a value is missing"),
        ("believe " + "k" * 201 + " v", "key: "),
        ("forget", "a key is missing"),
        ("!", "a sandbox command such as"),
        ("mission", "a mission is missing"),
        ("agent_create", "an agent type is missing"),
        ("agent_create bdi_agent", "an agent id is missing"),
        ("agent_create bdi_agent ../x", "no agent id"),
        ("agent_create bdi_agent that runs tests", "cannot be an agent's id"),
        ("agent_create bdi_agent two [1]", "a JSON object, not a list"),
        ('agent_create bdi_agent two {"a"', "looks like JSON and is not"),
        ("agent_create bdi_agent two {" + '"n":' + "9" * 5_000 + "}", "looks like JSON and is not"),
        ("agent_delete", "an agent id is missing"),
        ("x" * 1_000_001, "at most 1000000"),
    ],
    ids=lambda value: value[:40],
)
def test_what_means_nothing_is_answered_in_one_line(context: Context, line: str, said: str) -> None:
    with pytest.raises(GrammarError) as refusal:
        read_line(line, context)
    assert said in str(refusal.value)
    assert len(str(refusal.value)) < 1_000


ANYTHING_GOES = {
    "campaign",
    "coord_analyze",
    "coord_rollback",
    "coord_process_backlog",
    "why",
    "wrong",
    "right",
    "retract",
    "drift",
    "drop",
    "abort",
    "until",
    "skip",
    "retry",
    "unsaved",
    "break",
    "unbreak",
    "theme",
    "help",
}
ANYTHING_GOES |= {"stop_job", "return_shell", "settle", "step", "breaks", "plans", "reflect", "cancel"}
ANYTHING_GOES |= {"memory", "compare", "recap", "stop", "thaw", "deny", "outcomes", "undo", "redo"}
ANYTHING_GOES |= {"control", "fleet", "handoffs", "agents", "take", "pause", "ideas"}
ANYTHING_GOES |= {"approve", "approvals", "accept", "reject", "envelope", "inbox", "rules", "guide"}
ANYTHING_GOES |= {"embedder"}
"""Verbs whose argument may be left out or be any word."""


def test_usage_follows_when_an_argument_is_wrong(context: Context) -> None:
    for verb in built_in_commands():
        if verb.name in ANYTHING_GOES:
            continue
        wrong = f"{verb.name} too much said" if " " not in verb.usage else verb.name
        if verb.name in ("run", "budget", "stop", "thaw", "trust", "tour"):
            wrong = f"{verb.name} away"
        with pytest.raises(GrammarError, match="· usage: "):
            read_line(wrong, context)


def test_settle_offers_what_changed(context: Context) -> None:
    assert context.state is not None
    assert complete("settle ", context) == []
    offers = (OfferedBelief("files.added", ["a.py"], "added: a.py"),)
    context.state.handover = Handover("a1", offers, SandboxSession(cwd="shop"))
    assert [line for line, _about in complete("settle ", context)] == [
        "settle all",
        "settle none",
        "settle files.added",
        "settle place",
    ]
    assert complete("settle fi", context) == [("settle files.added", "added: a.py")]


def test_an_ended_goal_is_not_meant_while_another_is_open(context: Context) -> None:
    from dataclasses import replace

    from engine.core.goals import GoalStatus

    assert context.state is not None
    context.state.goals["g2"] = replace(context.state.goals["g2"], status=GoalStatus.ACHIEVED)
    assert read_line("drop", context).sends == _pilot(cmd.DropGoal, goal="g1")


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("go", "goal "),
        ("PAU", "pause "),
        ("goal read", "goal read notes.txt"),
        ("goal files", "goal list the files in src"),
        ("stop_job ", "stop_job j3"),
        ("break s", "break s7"),
        ("agent o", "agent other"),
        ("theme ", "theme dusk"),
        ("help qui", "help quit"),
        ("mission f", "mission first-flight"),
    ],
)
def test_a_beginning_is_completed(context: Context, line: str, first: str) -> None:
    assert complete(line, context)[0][0] == first


def test_nothing_is_completed_where_nothing_is_known(context: Context) -> None:
    assert complete("zzz", context) == []
    assert complete("zzz x", context) == []
    assert complete("break s7", Context()) == []
    assert len(complete("", context)) == 12


def test_every_function_that_a_command_names_is_there() -> None:
    for command in built_in_commands():
        runs: list[object] = [command.run, command.preview, *(form.run for form in command.forms)]
        runs += [run.answer for run in runs if isinstance(run, Show)]
        for run in runs:
            assert not isinstance(run, late) or callable(run.find()), command.name
