"""What the agents of a workspace share, and the ports that each is given.

A subsystem with a stream of its own is opened when it is first needed: a start that needs none imports none.
What tools from outside (MCP servers) offer is recorded in each agent's stream.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from engine.agent.actions.pipeline import LiveToolbox, Toolbox
from engine.agent.actions.snapshots import NoSaver, SnapshotRule
from engine.agent.branches import Branches
from engine.agent.model_calls import BudgetClient, ModelStreamRecorder
from engine.agent.perception import AgentEnvironment, WorkspacePerceiver, learn_nothing
from engine.agent.settings import read_recovery, read_settings
from engine.agent.steering.ledger import Ledger
from engine.agent.steering.reviews import Reviewer, ReviewerChoice
from engine.agent.steering.rules import policy_of
from engine.agent.turn_scheduler import TurnScheduler
from engine.core.actions import ToolOffered
from engine.core.agents import ACP, ACP_AGENT, BY_SPEC, HANDOFF, RUN_TYPES, AgentConfig, recording_of
from engine.core.approvals import Policy
from engine.core.budgets import SpendingLimits, check_limits
from engine.core.crew import CrewSettings
from engine.core.improvement import MastermindSettings
from engine.core.journal import JournalError
from engine.core.ports import CommandSpec, Parameter, Permits, Ports, Tool
from engine.core.reasoner import REASONER, SentMessage
from engine.core.state import AgentState
from engine.core.store.blobs import BlobStore
from engine.core.store.port import JournalStore
from engine.core.streams import StateStream
from engine.core.thinking import Thinker
from engine.core.trust import FolderTrust
from engine.memory.memory import Memory
from engine.memory.metacognition.runner import BackgroundRunner
from engine.memory.metacognition.schedule import read_metacognition
from engine.memory.metacognition.stuck import read_stuck
from engine.models.choice import NO_MODEL, REPAIRS, ModelChoice, read_repairs
from engine.models.prompt_parts import PromptReader
from engine.planning import thinkers
from engine.sandbox.policy import SandboxPolicy
from engine.tools.registry import ToolRegistry
from engine.tools.shared_coder import SharedCoder, policy_limits
from engine.value import asdict, dataclass, field, fields, fields_of

if TYPE_CHECKING:
    from engine.memory.embedder_choice import EmbedderChoice
    from engine.models.completion import ModelClient, ModelProvider
    from engine.planning.pgp.requests import Answerer
    from engine.planning.thinkers.procedural import ProceduralThinker
    from engine.sandbox.jobs import Sessions


class _Subsystem(Protocol):
    @property
    def stream(self) -> StateStream[Any]:
        """Its stream."""

    async def close(self) -> None:
        """End what runs."""


R = TypeVar("R", bound=_Subsystem)


class LazySubsystem(ABC, Generic[R]):
    """A subsystem with a stream of its own, opened when it is first needed.

    Args:
        name: what it is called among the tasks.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._opening: asyncio.Task[R] | None = None
        self.has_stream = False
        """Whether it has events of earlier sessions, so that something may be left half done."""

    async def opened(self) -> R:
        """The subsystem, open.

        Raises:
            JournalError: its stream cannot be read.
        """
        return await asyncio.shield(self.begin())

    async def known(self) -> R | None:
        """The subsystem, open; None where it was never needed, or its stream cannot be read."""
        if self._opening is not None or self.has_stream:
            with suppress(JournalError):
                return await self.opened()
        return None

    def begin(self) -> asyncio.Task[R]:
        """Begin to open it, where that is not begun, or failed."""
        begun = self._opening
        if begun is None or (begun.done() and (begun.cancelled() or begun.exception() is not None)):
            begun = asyncio.create_task(self._open(), name=f"{self._name} opening")
            # Whoever awaits it gets the error.
            begun.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._opening = begun
        return begun

    @abstractmethod
    async def _open(self) -> R:
        """Open it."""

    @property
    def _here(self) -> R | None:
        """The subsystem, where it is open by now."""
        begun = self._opening
        if begun is None or not begun.done() or begun.cancelled() or begun.exception() is not None:
            return None
        return begun.result()

    @property
    def trouble(self) -> Exception | None:
        """Why its stream could not be written last; None where it could."""
        return self._here.stream.log.trouble if self._here is not None else None

    async def try_again(self) -> None:
        """Write what the journal refused, where there is such."""
        if self._here is not None and self.trouble is not None:
            with suppress(JournalError):
                await self._here.stream.commit()

    async def close(self) -> None:
        """End what runs; may be called again."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._here is not None:
                await self._here.close()


_LEFT_OUT = ("schema", "parameters")


def from_outside(tools: Iterable[Tool]) -> Iterator[Tool]:
    """Those of the tools that come from outside, as they say of themselves by `foreign`."""
    return (tool for tool in tools if getattr(tool, "foreign", False))


def offer_of(tool: Tool) -> ToolOffered:
    """What a tool offers now, for the record."""
    return ToolOffered(tool=tool.id, commands=tuple(_recorded(spec) for spec in tool.commands.values()))


def commands_of(offer: ToolOffered) -> dict[str, CommandSpec]:
    """The commands of a recorded offer."""
    specs = (_restored(command) for command in offer.commands)
    return {spec.name: spec for spec in specs}


def _recorded(spec: CommandSpec) -> dict[str, Any]:
    out = {field.name: getattr(spec, field.name) for field in fields(spec) if field.name not in _LEFT_OUT}
    return {**out, "parameters": [*map(asdict, spec.parameters)], "checked": spec.schema is not None}


def _restored(command: Mapping[str, Any]) -> CommandSpec:
    known = {name: value for name, value in command.items() if name not in ("parameters", "checked")}
    parameters = tuple(Parameter(**parameter) for parameter in command["parameters"])
    return CommandSpec(**known, parameters=parameters, schema={} if command["checked"] else None)


@dataclass(frozen=True, slots=True)
class RunModelCalls:
    """How a run asks its model."""

    client: ModelClient
    of_tier: Callable[[str], str]
    """The name of the model of a tier."""
    stream: ModelStreamRecorder
    """Records what the model says."""
    aside: ModelClient | None = None
    """Asks a model by which output is judged; None where there is none."""
    judge: str = ""
    """The model that judges; empty for the one of the run's tier."""


class RunThinkers(Protocol):
    """Makes the thinkers of agents that work on handoffs."""

    def problem(self, agent_type: str, meta: Mapping[str, Any]) -> str:
        """Why no run can be made of a configuration, in one line; empty when one can."""

    def thinker(self, state: AgentState, calls: RunModelCalls | None) -> Thinker:
        """The thinker of a run; without calls it asks no model."""


STYLES = ("plan", "decide")
"""How a model thinks for an agent: whole plans, or one decision after the other (`"style"` at creation)."""


RECORDED_PACE = 300
"""Characters a second at which recorded answers come, where the settings say nothing."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How a workspace is opened."""

    sandbox: Path | None = None
    """Root of the agents' work; `sandbox` below the workspace by default."""
    policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    snapshots: SnapshotRule = SnapshotRule.REQUIRED
    """Whether the sandbox's files are saved before each action that may change them."""
    approvals: Policy = field(default_factory=Policy)
    """What agents ask about before they do it, as the workspace's settings say."""
    reviewer: ReviewerChoice | None = None
    """Who looks at what the operator would be asked, as their own settings say; None for nobody."""
    deny_after_s: float | None = None
    """How long an approval may wait before it is denied by itself; None for as long as it takes."""
    folder_approvals: Policy = field(default_factory=Policy)
    """What the folder's settings say where the folder is not trusted: beside the user's own."""
    create: bool = True
    looks_only: bool = False
    """Whether no command is carried out, as the workspace is there to be looked at and goes away."""
    trust: FolderTrust | None = None
    """What the user trusts of the folder; None where whoever opens it answers for all that is in it."""
    home: Path | None = None
    """The user's own directory, outside of any workspace: its `mcp.json` needs no leave, and its key makes
    leave last (`engine.tools.mcp.permissions`)."""
    model: ModelChoice | None = None
    """The model that thinks; None where there is none: agents then plan by the plan library."""
    embedder: EmbedderChoice | None = None
    """Who turns memories into vectors; None where words alone find them."""
    rewrite: bool = False
    """Whether a model puts queries to memory in other ways, and orders what is found."""
    recorded_pace: int = RECORDED_PACE
    """Characters a second of answers that come from a recording; 0 gives them at once."""
    budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What all agents together may take over all sessions."""
    agent_budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What each agent may take, with those that work for it."""
    disk_mb: int | None = None
    """Room that the data of the workspace may take on the disk; None for all that there is."""
    keep_days: int | None = None
    """Days after which old contents are archived; None for never."""
    journal_mb: int | None = None
    """What journal and blobs may take before the oldest contents are archived; None for all that there is."""
    mastermind: MastermindSettings = field(default_factory=MastermindSettings)
    """How the system improves itself."""
    crew: CrewSettings = field(default_factory=CrewSettings)
    """Limits of the agents that hand work to each other."""
    answerer: Callable[[AgentState], Answerer | None] | None = None
    """Who makes plans for an agent's reasoner; by default the recorded answers that it was created with."""


class _AgentModel(NamedTuple):
    """Who answers an agent."""

    client: ModelClient
    name: str
    of_tier: Callable[[str], str]
    repairs: int = REPAIRS
    roles: Mapping[str, str] = {}
    fallback: tuple[str, ...] = ()


@dataclass(slots=True)
class SharedServices:
    """What all agents of a workspace share."""

    workspace: Path
    """The workspace's directory."""
    config: EngineConfig
    ports: Ports
    store: JournalStore
    blobs: BlobStore
    registry: ToolRegistry
    coders: SharedCoder
    control: Sessions
    """All processes that run for agents."""
    memory: Memory
    kept: Callable[[], Awaitable[None]]
    """Waits until memory holds what the journal holds."""
    client: ModelProvider | None
    """Whom models are asked through; None where there is none."""
    ledger: Ledger
    background: BackgroundRunner
    branches: Branches
    run_thinkers: RunThinkers
    """Makes the thinkers of agents that work on handoffs."""
    procedural: ProceduralThinker
    """Who plans where no model does."""
    parts: PromptReader
    """The workspace's parts of prompts."""
    pace: TurnScheduler
    """Whose turn it is."""
    permits: Permits | None = None
    """Limits the calls of models for those that work on handoffs; None while there is no crew."""

    def thinks(self, state: AgentState) -> bool:
        """Whether an agent may call a model."""
        return self._model_of(state.config.meta) is not None and (state.reasons or state.config.replans)

    def _model_of(self, config: Mapping[str, Any]) -> _AgentModel | None:
        """What an agent's calls go to, by its configuration; None where no model answers it."""
        if name := recording_of(config):
            from engine.models import recorded  # late: only the demonstration has recordings

            speaker, pace = recorded.speaker_of(config), self.config.recorded_pace
            client = recorded.RecordedModel(name, speaker, self.ports.clock, pace)
            return _AgentModel(client, recorded.NAME, lambda _tier: recorded.NAME)
        model = self.config.model
        if self.client is None or model is None:
            return None
        return _AgentModel(self.client, model.name, model.of_tier, model.repairs, model.roles, model.fallback)

    def why_not(self, agent_type: str, config: AgentConfig, *, new: bool = False) -> str:
        """Why no agent can live here with this configuration; empty when one can.

        Args:
            agent_type: what kind of agent it is to be.
            config: the configuration.
            new: the operator is asking now, and is told when they ask for more than the workspace allows.
        """
        if agent_type in RUN_TYPES:
            if config.thinker != BY_SPEC:
                return f"a {agent_type} thinks as its specification says: leave its thinker out"
            if wrong := self.run_thinkers.problem(agent_type, config.meta):
                return wrong
        elif agent_type == ACP_AGENT or config.thinker == ACP:
            if (agent_type, config.thinker) != (ACP_AGENT, ACP):
                return f"an {ACP_AGENT} is its program: leave its thinker out"
            from engine.agent.acp import support  # late: few agents are programs

            if wrong := support.problem(config.meta):
                return wrong
        elif config.thinker not in (self.procedural.name, thinkers.CLAUDE):
            known = f"{self.procedural.name}, {thinkers.CLAUDE}"
            return f"there is no thinker '{config.thinker}'; thinkers: {known}"
        if config.thinker == thinkers.CLAUDE and self._model_of(config.meta) is None:
            return NO_MODEL
        policy = self.coders.of().policy
        try:
            if name := recording_of(config.meta):
                from engine.models.recorded import load_recording  # late, as above

                load_recording(name)
            if agent_type == REASONER:
                from engine.agent.reasoner.actions import read_config  # late: few agents have a program

                read_config(config.meta)
            (policy.check_narrowing if new else policy.narrowed)(policy_limits(config.meta))
            read_settings(config.meta)
            read_recovery(config.meta)
            read_metacognition(config.meta)
            read_stuck(config.meta)
            read_repairs(config.meta)
            policy_of(config.meta)
            if wrong := check_limits(config.meta.get("budget", {})):
                return wrong
        except ValueError as error:  # each reader's own
            return str(error)
        if (style := config.meta.get("style", STYLES[0])) not in STYLES:
            return f"there is no style {style!r}; styles: {', '.join(STYLES)}"
        if style != STYLES[0] and (agent_type == REASONER or not config.replans):
            return f"the style {style!r} needs a model that thinks: give the thinker {thinkers.CLAUDE!r}"
        return ""

    def surroundings(self, state: AgentState, post: Callable[[str, SentMessage], None]) -> AgentEnvironment:
        """What an agent finds around it; `post` delivers its messages to others."""
        thinker: Thinker = self.procedural
        answerer: Answerer | None = None
        if state.reasons:
            from engine.agent.reasoner_deliberation import recorded_answers  # late, as above

            answerer = (self.config.answerer or recorded_answers)(state)
        stream: ModelStreamRecorder | None = None
        client: BudgetClient | None = None
        name, repairs, model = "", REPAIRS, self._model_of(state.config.meta)
        roles = model.roles if model is not None else {}
        if model is not None:
            name = roles.get("decide" if state.config.decides else "plan", model.name)
            repairs = read_repairs(state.config.meta, model.repairs)
            recorder = stream = ModelStreamRecorder(model.client)
            permit = partial(self._permit, state) if state.hands_back else nullcontext
            client = BudgetClient(model.client, self.ledger, lambda: recorder.goal, permit, model.fallback)
            if answerer is None and state.reasons:
                from engine.planning.thinkers.model_answerer import ModelAnswerer  # late, as above

                answerer = ModelAnswerer(client, name, sink=stream.piece, record=stream.called)
            if state.config.thinker == thinkers.CLAUDE:
                thinker = self._claude(state, client, stream, name, repairs)
        if state.agent_type in RUN_TYPES:
            calls: RunModelCalls | None = None
            if stream is not None and client is not None and model is not None:
                judge = roles.get("judge", "")
                calls = RunModelCalls(client, model.of_tier, stream, client.aside, judge)
            thinker = self.run_thinkers.thinker(state, calls)
        toolbox: Toolbox = LiveToolbox(self.registry)
        saver = self.branches.saver_of(state.agent_id) or NoSaver()
        if state.config.thinker == ACP:
            stream = stream or ModelStreamRecorder(None)
            from engine.agent.acp import support  # late, as above

            thinker, toolbox = support.agent(state, self.coders, self.store, stream, toolbox, saver)
        own = self.client if model is not None and model.client is self.client else None
        learn = partial(own.learn, name) if own is not None else learn_nothing
        trust = self.config.trust
        return AgentEnvironment(
            thinker=thinker,
            toolbox=toolbox,
            saver=saver,
            perceiver=WorkspacePerceiver(self.registry, self.coders, state.agent_id),
            clock=self.ports.clock,
            put_blob=self.blobs.put,
            randomness=self.ports.randomness,
            answerer=answerer,
            model_stream=stream,
            model=client,
            # An agent that plans by recipes alone does not pay for a model.
            model_name=name if state.reasons or state.config.replans else "",
            learn=learn,
            summariser=roles.get("summarise", ""),
            repairs=repairs,
            post=post,
            seal=trust.seal if trust is not None else lambda _stream, payload: payload,
            reviewer=self._reviewer(client, roles.get("judge", name)),
            watches=True,
            workflow_of=self._workflow_of,
            **fields_of(self, "registry", "control", "parts", "ledger", "background", "pace", "memory"),
        )

    async def _workflow_of(self, memory: Memory, agent: str, goal: str) -> str:
        """The workflow of a goal, once memory holds what was done so far: it follows the journal."""
        await self.kept()
        return await memory.workflow_of(agent, goal)

    def _reviewer(self, client: BudgetClient | None, model: str) -> Reviewer | None:
        """Who looks at what the operator would be asked about an agent."""
        choice, home = self.config.reviewer, self.config.home
        if choice is None:
            return None
        from engine.agent import reviewer  # late: few have one

        if choice.command:
            root = self.config.sandbox or self.workspace / "sandbox"
            return reviewer.ProgramReviewer(
                choice, self.workspace, root, self.config.policy, home or Path("/")
            )
        return reviewer.ModelReviewer(client.aside if client is not None else None, model, choice.timeout_s)

    def _claude(
        self, state: AgentState, client: BudgetClient, stream: ModelStreamRecorder, name: str, repairs: int
    ) -> Thinker:
        """The thinker that asks a model."""
        # Late: a start without a model needs neither.
        from engine.planning.thinkers.claude import ClaudeThinker
        from engine.planning.thinkers.claude_prompt import budget_for
        from engine.planning.thinkers.memory_context import MemoryRecall
        from engine.planning.thinkers.plan_check import Files, files_now

        async def files() -> Files | None:
            return await asyncio.to_thread(lambda: files_now(self.coders.of(state.agent_id).files))

        memory_tokens = budget_for(client.capabilities(name)).memory
        return ClaudeThinker(
            client,
            self.registry,
            name,
            sink=stream.piece,
            record=stream.called,
            recall=MemoryRecall(self.memory, lambda: state, self.kept, memory_tokens),
            parts=self.parts,
            repairs=repairs,
            recipes=self.procedural,
            files=files,
        )

    def _permit(self, state: AgentState) -> AbstractAsyncContextManager[None]:
        """Held during a call of a run's model."""
        if self.permits is None:
            return nullcontext()
        return self.permits.held(str(state.config.meta[HANDOFF].get("handoff_id", "")))
