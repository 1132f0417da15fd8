"""What the agents of a workspace share, and what each finds around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine import loop, reasoner, thinkers
from engine.actions.pipeline import LiveToolbox
from engine.actions.saving import NoSaver, SnapshotRule
from engine.domain.approval import Policy
from engine.domain.budgets import SpendingLimits, check_limits
from engine.domain.crew import CrewSettings
from engine.domain.mastermind import MastermindSettings
from engine.domain.ports import Permits, Ports, SessionControl
from engine.domain.reasoning import REASONER, SentMessage
from engine.domain.running import BY_SPEC, HANDOFF, RUN_TYPES
from engine.domain.state import AgentConfig, AgentState
from engine.domain.thinking import Thinker
from engine.generation import pgp
from engine.journal.blobs import BlobStore
from engine.journal.store import JournalStore
from engine.library.prompt_parts import PromptReader
from engine.loop.branching import Branches
from engine.loop.pacing import Pace
from engine.loop.perceive import WorkspacePerceiver
from engine.loop.recording import Surroundings
from engine.loop.voice import RUBRICS, Voice
from engine.memory import Memory
from engine.metacognition import (
    BackgroundRunner,
    MetaSettingsError,
    StuckSettingError,
    read_metacognition,
    read_stuck,
    workflow_of,
)
from engine.models.choice import NO_MODEL, ModelChoice
from engine.models.repairs import REPAIRS, RepairsError, read_repairs
from engine.parameters import SettingsError, read_settings
from engine.recovery import RecoverySettingsError, read_recovery
from engine.sandbox.policy import PolicyError, SandboxPolicy
from engine.steering.ledger import Ledger
from engine.steering.policies import policy_of
from engine.steering.rules import RuleError
from engine.thinkers.recalling import Recall, Recaller, nothing
from engine.tools.coders import Coders, narrowing
from engine.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from engine.models.port import ModelClient
    from engine.thinkers.brief import Colleagues

STYLES = ("plan", "decide")
"""How a model thinks for an agent: whole plans, or one decision after the other (`"style"` at creation)."""


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
    create: bool = True
    home: Path | None = None
    """The user's own directory, outside of any workspace: its `mcp.json` needs no leave, and its key makes
    leave last (`engine.mcp.leave`)."""
    model: ModelChoice | None = None
    """The model that thinks; None where there is none: agents then plan by the plan library."""
    budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What all agents together may take over all sessions."""
    agent_budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What each agent may take, with those that work for it."""
    mastermind: MastermindSettings = field(default_factory=MastermindSettings)
    """How the system improves itself."""
    crew: CrewSettings = field(default_factory=CrewSettings)
    """Limits of the agents that hand work to each other."""
    answerer: Callable[[AgentState], pgp.Answerer | None] | None = None
    """Who makes plans for an agent's reasoner; by default the recorded answers that it was created with."""


@dataclass(slots=True)
class Shared:
    """What all agents of a workspace share."""

    workspace: Path
    """The workspace's directory."""
    config: EngineConfig
    ports: Ports
    store: JournalStore
    blobs: BlobStore
    registry: ToolRegistry
    coders: Coders
    control: SessionControl
    """All processes that run for agents."""
    memory: Memory
    kept: Callable[[], Awaitable[None]]
    """Waits until memory holds what the journal holds."""
    client: ModelClient | None
    """Whom models are asked through; None where there is none."""
    ledger: Ledger
    background: BackgroundRunner
    branches: Branches
    procedural: Thinker
    """Who plans where no model does."""
    parts: PromptReader
    """The workspace's parts of prompts."""
    pace: Pace = field(default_factory=Pace)
    """Whose turn it is."""
    permits: Permits | None = None
    """Leave to ask a model for those that work on handoffs; None while there is no crew."""
    colleagues: Colleagues | None = None
    """Whom these may hand work to; None while there is no crew."""
    scripted: Callable[[AgentState], ModelClient | None] = lambda _state: None
    """Who answers instead of a model while a new agent is proved; None for all other runs."""

    def thinks(self, state: AgentState) -> bool:
        """Whether an agent may call a model."""
        return self.client is not None and (state.reasons or state.config.replans)

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
            if wrong := thinkers.brief_problem(agent_type, config.meta):
                return wrong
        elif config.thinker not in (self.procedural.name, thinkers.CLAUDE):
            known = f"{self.procedural.name}, {thinkers.CLAUDE}"
            return f"there is no thinker '{config.thinker}'; thinkers: {known}"
        if config.thinker == thinkers.CLAUDE and self.client is None:
            return NO_MODEL
        policy = self.coders.of().policy
        try:
            if agent_type == REASONER:
                reasoner.read_config(config.meta)
            (policy.check_narrowing if new else policy.narrowed)(narrowing(config.meta))
            read_settings(config.meta)
            read_recovery(config.meta)
            read_metacognition(config.meta)
            read_stuck(config.meta)
            read_repairs(config.meta)
            policy_of(config.meta)
            if wrong := check_limits(config.meta.get("budget", {})):
                return wrong
        except (
            RuleError,
            PolicyError,
            reasoner.ReasonerError,
            SettingsError,
            RecoverySettingsError,
            MetaSettingsError,
            RepairsError,
            StuckSettingError,
        ) as error:
            return str(error)
        if (style := config.meta.get("style", STYLES[0])) not in STYLES:
            return f"there is no style {style!r}; styles: {', '.join(STYLES)}"
        if style != STYLES[0] and (agent_type == REASONER or not config.replans):
            return f"the style {style!r} needs a model that thinks: give the thinker {thinkers.CLAUDE!r}"
        return ""

    def surroundings(self, state: AgentState, post: Callable[[str, SentMessage], None]) -> Surroundings:
        """What an agent finds around it; `post` delivers its messages to others."""
        thinker = self.procedural
        answerer = (self.config.answerer or _recorded_answers)(state)
        voice: Voice | None = None
        heard: Voice | None = None
        purse: loop.Purse | None = None
        name, repairs = "", REPAIRS
        if self.client is not None and self.config.model is not None:
            name = self.config.model.name
            repairs = read_repairs(state.config.meta, self.config.model.repairs)
            voice = Voice(self.client)
            leave = partial(self._leave, state) if state.agent_type in RUN_TYPES else nullcontext
            purse = loop.Purse(self.client, self.ledger, lambda: voice.goal, leave)
            if answerer is None and state.reasons:
                answerer = thinkers.ModelAnswerer(purse, name, sink=voice.piece, record=voice.called)
            if state.config.thinker == thinkers.CLAUDE:
                recall: Recall = nothing
                if self.memory is not None:
                    recall = Recaller(
                        self.memory, workflow_of, lambda: state, self.ports.clock, kept=self.kept
                    )
                thinker = thinkers.ClaudeThinker(
                    purse,
                    self.registry,
                    name,
                    sink=voice.piece,
                    record=voice.called,
                    recall=recall,
                    parts=self.parts,
                    repairs=repairs,
                )
        if state.agent_type in RUN_TYPES:
            asker = judge = None
            if (script := self.scripted(state)) is not None:
                # It costs nothing, so it draws on no budget.
                heard, purse = Voice(script), None
                asker = thinkers.SpecAsker(script, self.registry, str, heard.piece, heard.called)
            elif voice is not None and purse is not None and self.config.model is not None:
                asker = thinkers.SpecAsker(
                    purse, self.registry, self.config.model.of_tier, voice.piece, voice.called
                )
                judge = thinkers.RubricJudge(
                    purse.aside, self.config.model.of_tier, partial(voice.called, purpose=RUBRICS)
                )
            thinker = thinkers.SpecThinker(state, self.registry, asker, lambda: self.colleagues, judge)
        return Surroundings(
            thinker=thinker,
            toolbox=LiveToolbox(self.registry),
            saver=self.branches.saver_of(state.agent_id) or NoSaver(),
            perceiver=WorkspacePerceiver(self.registry, self.coders, state.agent_id),
            registry=self.registry,
            clock=self.ports.clock,
            put_blob=self.blobs.put,
            randomness=self.ports.randomness,
            control=self.control,
            answerer=answerer,
            voice=heard or voice,
            model=purse,
            # Whoever chose to plan by recipes alone did not choose to pay for a model.
            model_name=name if state.reasons or state.config.replans else "",
            parts=self.parts,
            repairs=repairs,
            post=post,
            ledger=self.ledger,
            background=self.background,
            pace=self.pace,
            watches=True,
            memory=self.memory,
        )

    def _leave(self, state: AgentState) -> AbstractAsyncContextManager[None]:
        """Leave for a call of a run's model."""
        if self.permits is None:
            return nullcontext()
        return self.permits.held(str(state.config.meta[HANDOFF].get("handoff_id", "")))


def _recorded_answers(state: AgentState) -> pgp.Answerer | None:
    """Answers that are known beforehand, where an agent's reasoner was given some."""
    if not state.reasons:
        return None
    answers = reasoner.read_config(state.config.meta).generation.answers
    return pgp.RecordedAnswers(answers) if answers else None
