"""Models that fill every pane, and a small cockpit that mounts them all."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.filter import LineFilter
from textual.message import Message

from themes.loading import load_themes
from widgets.base.facts import ListModel
from widgets.base.line_pane import Requested
from widgets.base.text_layout import CONTROL_FILTER
from widgets.panes.beliefs import WorkingMemory, entry_row, memory_row, memory_rows
from widgets.panes.command_bar import CommandBar, Completion
from widgets.panes.errors import ErrorPanel, error_rows
from widgets.panes.goals import GoalStack, agent_row, goal_row, stacked
from widgets.panes.mind_stream import MindStream, mind_row
from widgets.panes.plan import PlanModel, PlanPane, StepLine
from widgets.panes.session import SandboxPane, SessionChunk, SessionModel
from widgets.panes.status_bar import StatusBar, StatusModel

GOALS = stacked(
    goals=(
        goal_row("g1", "build a project with a virtual environment that fetches JSON", "active", "", 3, 7),
        goal_row("g2", "write main.py", "active", "├ ", 1, 2),
        goal_row("g3", "list the files of the project", "pending", "└ "),
        goal_row("g4", "explore the empty directory", "achieved"),
        goal_row("g5", "reach the old server", "failed"),
        goal_row("g6", "polish", "dropped"),
    ),
    agents=(
        agent_row("explorer-1", "running", selected=True),
        agent_row("builder-2", "asks", "asks to delete"),
        agent_row("reviewer-3", "paused"),
        agent_row("scribe-4", "stopped"),
    ),
)
PLAN = PlanModel(
    goal="build",
    revision=3,
    steps=(
        StepLine("s1", "mkdir api_client", "completed", clause_index=1),
        StepLine("s2", "create_venv .venv", "completed", clause_index=2),
        StepLine(
            "s3",
            "run pip install httpx",
            "running",
            breakpoint=True,
            tool="simple_coder",
            command="run",
            args={"command": "pip install httpx", "timeout": 120, "env": {"PIP_NO_INPUT": "1"}},
            thinker="procedural",
            recipe="python_project.toml:install",
            clause="install the httpx library",
            clause_index=3,
            attempts=2,
            error="NETWORK_ERROR could not reach the package index",
            depends_on=("s2",),
        ),
        StepLine("s4", "write main.py", "planned", held=True, clause_index=4),
        StepLine("s5", "run python main.py", "planned", breakpoint=True, clause_index=5),
        StepLine("s6", "list_files", "skipped"),
        StepLine("s7", "delete old.txt", "unknown"),
        StepLine("s8", "read notes.md", "failed"),
    ),
)
MEMORY = memory_rows(
    capacity=20,
    entries=(
        entry_row("m1", "goal", "build api_client", focused=True),
        entry_row("m2", "belief", "pip is available in .venv", confidence=0.9, fresh=True),
        entry_row("m3", "fact", "httpx 0.28 needs anyio", confidence=0.75),
        entry_row("m4", "result", "mkdir made api_client", confidence=1.0),
    ),
    memories=(
        memory_row("m7", "the index answers slowly before noon", "fact", 8.2, "3h", focal=True),
        memory_row("m5", "create_venv took 4 s", "action_log", 6.1, "4m", pinned=True),
        memory_row("m6", "is there a proxy?", "question", 0.4, "now"),
    ),
)
ERRORS = ListModel(
    rows=(
        *error_rows(
            "e1",
            "NETWORK_ERROR",
            "run pip install httpx",
            "Temporary failure in name resolution",
            ("RETRY_WITH_DELAY", "2/3", "4s"),
        ),
        *error_rows(
            "e2",
            "PERMISSION_ERROR",
            "write /etc/hosts",
            "outside the sandbox",
            ("FALLBACK_MANUAL",),
            waits=True,
        ),
        *error_rows(
            "e3", "TOOL_EXECUTION_ERROR", "run python main.py", "", ("SIMPLIFIED_APPROACH",), resolved=True
        ),
    ),
    caption="2 open",
)
MIND = ListModel(
    rows=tuple(
        mind_row(f"d{at}", kind, text, f"14:03:{at:02d}")  # type: ignore[arg-type]
        for at, (kind, text) in enumerate(
            [
                ("deliberation", "two goals are open; build api_client has priority 3 and is older"),
                ("plan", "recipe python_project:venv covers clauses 1 to 5, list_files covers 6"),
                (
                    "thought",
                    "The package index did not answer. Waiting has worked in 7 of 9 cases, so I wait.",
                ),
                ("decision", "retry run pip install httpx after 4 s"),
                ("reflection", "installations fail less when the environment is made first"),
                ("note", "breakpoint on step 5 set by the operator"),
            ]
        )
    )
)
STATUS = StatusModel(
    agent="explorer-1",
    mode="PAUSED",
    point="before acting",
    tick=42,
    thinker="procedural",
    tokens=12_400,
    cost_usd=0.08,
    context=0.41,
    background=2,
    background_limit=10,
    errors=1,
    sandbox="KERNEL",
)
SESSION = (
    SessionChunk("(.venv) ./api_client $ pip install httpx", "prompt"),
    SessionChunk("Collecting httpx\n  Downloading httpx-0.28.1-py3-none-any.whl (73 kB)\n"),
    SessionChunk("\x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[2m━━━━━\x1b[0m 57/73 kB 2.1 MB/s\r"),
    SessionChunk("\x1b[32m━━━━━━━━━━━━━━━━━━━━━━━━━\x1b[0m 73/73 kB 2.4 MB/s\x1b[K\n"),
    SessionChunk("\x1b[1;32mSuccessfully installed\x1b[0m httpx-0.28.1 anyio-4.9\n"),
    SessionChunk("\x1b[33mWARNING\x1b[0m: a new release of pip is available\n", "err"),
    SessionChunk("./api_client $ python main.py", "prompt"),
    SessionChunk("{'status': \x1b[38;2;120;200;255m'ok'\x1b[0m, 'items': \x1b[38;5;208m42\x1b[0m}\n"),
)
COMMANDS = ("run", "rewind", "retry", "evolve", "coord_improve", "agent_create")


def complete(line: str) -> list[Completion]:
    return [Completion(name, f"the {name} command") for name in COMMANDS if name.startswith(line)]


class Cockpit(App[None]):
    """All panes side by side, filled by `fill`."""

    CSS = """
    #left { width: 30; } #middle { width: 1fr; } #right { width: 44; }
    #top { height: 3fr; } #bottom { height: 2fr; }
    GoalStack, PlanPane, SandboxPane, WorkingMemory { height: 1fr; }
    SandboxPane { width: 1fr; } MindStream { width: 44; } ErrorPanel { height: 10; }
    """

    def __init__(self, theme: str = "pilothouse-night", *, guarded: bool = True) -> None:
        super().__init__()
        self.guarded = guarded
        for each in load_themes()[0].values():
            self.register_theme(each)
        self.theme = theme
        self.goals, self.plan, self.memory = GoalStack(), PlanPane(), WorkingMemory()
        self.errors, self.session, self.mind = ErrorPanel(), SandboxPane(), MindStream()
        self.status, self.bar = StatusBar(), CommandBar(complete, history=["evolve a", "run b", "evolve c"])
        self.booms = 0

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, CONTROL_FILTER] if self.guarded else filters

    def compose(self) -> ComposeResult:
        yield self.status
        with Horizontal(id="top"):
            with Vertical(id="left"):
                yield self.goals
            with Vertical(id="middle"):
                yield self.plan
            with Vertical(id="right"):
                yield self.memory
                yield self.errors
        with Horizontal(id="bottom"):
            yield self.session
            yield self.mind
        yield self.bar

    def action_boom(self) -> None:
        self.booms += 1

    def fill(self) -> None:
        self.goals.show(ListModel(rows=GOALS))
        self.plan.show(PLAN)
        self.memory.show(MEMORY)
        self.errors.show(ERRORS)
        self.mind.show(MIND)
        self.status.show(STATUS)
        self.session.append(SESSION)
        self.session.show(SessionModel(exit_status=0, duration_s=3.42, bytes_hidden=12_345))
        self.bar.show("step 3 runs next", "ok")


def requests(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    """What was requested, each once."""
    asked = [(each.what, *each.args) for each in messages if isinstance(each, Requested)]
    return list(dict.fromkeys(asked))
