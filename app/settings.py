"""Settings: command line, environment, workspace file, user file, defaults, in this order.

A file that is wrong never keeps the cockpit from starting: what is wrong is said, and left out.
"""

from __future__ import annotations

import getpass
import os
import tomllib
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.actions import SnapshotRule
from engine.domain.approval import Policy
from engine.domain.budgets import AMOUNT_LIMITS, BudgetKind, SpendingLimits
from engine.domain.crew import CrewSettings
from engine.domain.mastermind import MastermindSettings
from engine.engine import EngineConfig
from engine.inquiry.notices import Rule
from engine.models import Budget, ModelError
from engine.models.choice import ModelChoice
from engine.models.repairs import REPAIRS, REPAIRS_LIMIT
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.steering.policies import PRESETS, read_policy
from engine.steering.rules import RuleError

FILE = "pilothouse.toml"
SIZE_LIMIT = 256 * 1024


class _CockpitTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    theme: str | None = None
    notify: Rule = Rule.DONE
    """`needs-you`: the bell and a notification when an agent needs the operator; `done`: when a goal ends,
    too; `off`: neither."""
    keys: dict[str, str] = Field(default_factory=dict)
    """Keys by binding id, such as `cockpit.step = "f10"`."""


class _SandboxTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    network: Network = Network.OFF
    """`off`, `ports` (HTTP and HTTPS with name look-up) or `on`."""
    accept_paths: bool = False
    """Run programs unconfined where the kernel offers no jail."""
    snapshots: SnapshotRule = SnapshotRule.REQUIRED
    """`required`: files are saved before each action that may change them; `off`."""


class _ModelTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str | None = Field(default=None, min_length=1, max_length=200)
    """The model that thinks, as its endpoint knows it."""
    budget_usd: Decimal | None = Field(default=None, ge=0)
    """US dollars that each agent may spend; it is held before a call that could break it."""
    budget_tokens: int | None = Field(default=None, ge=0)
    budget_calls: int | None = Field(default=None, ge=0)
    repairs: int | None = Field(default=None, ge=0, le=REPAIRS_LIMIT, strict=True)
    """How often it may put right an answer that cannot be used, before planning has failed."""


class _Amounts(BaseModel):
    model_config = ConfigDict(extra="forbid")
    usd: float | None = Field(default=None, ge=0, le=AMOUNT_LIMITS[BudgetKind.USD], allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=0, le=int(AMOUNT_LIMITS[BudgetKind.TOKENS]))
    calls: int | None = Field(default=None, ge=0, le=int(AMOUNT_LIMITS[BudgetKind.CALLS]))
    """Calls of models."""
    actions: int | None = Field(default=None, ge=0, le=int(AMOUNT_LIMITS[BudgetKind.ACTIONS]))
    seconds: float | None = Field(
        default=None, ge=0, le=AMOUNT_LIMITS[BudgetKind.SECONDS], allow_inf_nan=False
    )
    """Time at work."""

    @property
    def limits(self) -> SpendingLimits:
        """As what may be taken."""
        return SpendingLimits(self.usd, self.tokens, self.calls, self.actions, self.seconds)


class _BudgetTable(_Amounts):
    """What all agents together may take over all sessions."""

    agent: _Amounts = Field(default_factory=_Amounts)
    """What each agent may take, with those that work for it."""


class _MastermindTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cooldown_s: float | None = Field(default=None, ge=0, le=31_536_000, allow_inf_nan=False)
    """How long what failed is left alone."""
    interval_s: float | None = Field(default=None, ge=0, le=86_400, allow_inf_nan=False)
    """Between two items of the backlog that is worked off by itself."""
    watch_s: float | None = Field(default=None, ge=0, le=31_536_000, allow_inf_nan=False)
    """How long what was applied is watched."""
    busy_percent: float | None = Field(default=None, ge=0, le=100, allow_inf_nan=False)
    """The backlog is not worked off by itself while the processor is busier; 100 never puts it off."""
    approve_critical: bool | None = None
    critical: tuple[str, ...] | None = None
    """Stems of ids and paths that wait for the operator before anything is tried."""
    candidates: int | None = Field(default=None, ge=1, le=1_000)
    """What a campaign may try."""
    seconds: float | None = Field(default=None, gt=0, le=86_400, allow_inf_nan=False)
    """Processor time of judging."""
    usd: float | None = Field(default=None, ge=0, le=10_000, allow_inf_nan=False)
    """What models may cost in a campaign; 0 asks none."""


class _CrewTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    model_calls: int | None = Field(default=None, ge=1, le=64)
    """Model calls of all handoffs at a time."""
    built_ins: bool | None = None
    """Whether the agents that Pilothouse ships are there."""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    approvals: dict[str, Any] = Field(default_factory=dict)
    """What agents ask about (`engine.steering.policies`)."""
    budget: _BudgetTable = Field(default_factory=_BudgetTable)
    model: _ModelTable = Field(default_factory=_ModelTable)
    sandbox: _SandboxTable = Field(default_factory=_SandboxTable)
    mastermind: _MastermindTable = Field(default_factory=_MastermindTable)
    crew: _CrewTable = Field(default_factory=_CrewTable)
    cockpit: _CockpitTable = Field(default_factory=_CockpitTable)


def _crew(user: _CrewTable, local: _CrewTable) -> CrewSettings:
    usual = CrewSettings()
    built_ins = [one.built_ins for one in (local, user) if one.built_ins is not None]
    return CrewSettings(
        model_calls=local.model_calls or user.model_calls or usual.model_calls,
        built_ins=built_ins[0] if built_ins else usual.built_ins,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator chose."""

    theme: str | None = None
    keys: dict[str, str] = field(default_factory=dict)
    notify: Rule = Rule.DONE
    """What the operator is notified of."""
    operator: str = "operator"
    """Name under which commands are recorded."""
    network: Network = Network.OFF
    accept_paths: bool = False
    snapshots: SnapshotRule = SnapshotRule.REQUIRED
    approvals: Policy = field(default_factory=Policy)
    """What agents ask about before they do it."""
    model: ModelChoice | None = None
    """The model that thinks; None without a key and an endpoint."""
    budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What all agents together may take over all sessions."""
    agent_budget: SpendingLimits = field(default_factory=SpendingLimits)
    """What each agent may take; it counts before the budget of the model's settings."""
    mastermind: MastermindSettings = field(default_factory=MastermindSettings)
    crew: CrewSettings = field(default_factory=CrewSettings)
    """How the system improves itself."""
    home: Path = field(default_factory=lambda: _home(os.environ))
    problems: tuple[str, ...] = ()
    """What is wrong with the files, in sentences."""

    @classmethod
    def load(cls, workspace: Path, *, theme: str | None = None) -> Settings:
        """The settings for a workspace; blocking."""
        home = _home(os.environ)
        problems: list[str] = []
        user = _read(home / FILE, problems)
        local = _read(workspace / FILE, problems)
        model = _model(user.model, local.model, problems)
        approvals = _approvals((local if "approvals" in local.model_fields_set else user).approvals, problems)
        return cls(
            theme=theme or os.environ.get("PILOTHOUSE_THEME") or local.cockpit.theme or user.cockpit.theme,
            keys={**user.cockpit.keys, **local.cockpit.keys},
            notify=(local if "notify" in local.cockpit.model_fields_set else user).cockpit.notify,
            network=(local if "network" in local.sandbox.model_fields_set else user).sandbox.network,
            accept_paths=local.sandbox.accept_paths or user.sandbox.accept_paths,
            snapshots=(local if "snapshots" in local.sandbox.model_fields_set else user).sandbox.snapshots,
            approvals=approvals,
            operator=_operator(),
            model=model,
            budget=local.budget.limits.over(user.budget.limits),
            agent_budget=local.budget.agent.limits.over(user.budget.agent.limits),
            mastermind=_mastermind(user.mastermind, local.mastermind),
            crew=_crew(user.crew, local.crew),
            home=home,
            problems=tuple(problems),
        )

    @property
    def themes_directory(self) -> Path:
        """Where the operator's own themes are."""
        return self.home / "themes"

    def engine_config(
        self, *, network: bool = False, accept: Tier | None = None, model: bool = True
    ) -> EngineConfig:
        """How the engine is to be opened.

        Args:
            network: a mission declares that it needs the network.
            accept: the weakest jail that will do, said on the command line; the settings say it otherwise.
            model: whether a model may think where there is one.
        """
        policy = SandboxPolicy(accept_paths=self.accept_paths)
        if accept is not None:
            policy = policy.accepting(accept)
        granted = Network.PORTS if network and self.network is Network.OFF else self.network
        return EngineConfig(
            policy=policy.with_network(granted),
            snapshots=self.snapshots,
            approvals=self.approvals,
            model=self.model if model else None,
            budget=self.budget,
            agent_budget=self.agent_budget,
            mastermind=self.mastermind,
            crew=self.crew,
            home=self.home,
        )


def _mastermind(user: _MastermindTable, local: _MastermindTable) -> MastermindSettings:
    """How the system improves itself; the workspace's file counts before the user's."""
    given = {**user.model_dump(exclude_none=True), **local.model_dump(exclude_none=True)}
    usual = MastermindSettings()
    amounts = {name: given.pop(name) for name in ("candidates", "seconds", "usd") if name in given}
    return replace(usual, budget=replace(usual.budget, **amounts), **given)


def _approvals(given: dict[str, Any], problems: list[str]) -> Policy:
    """The policy of the file; one that cannot be read asks about everything, as it was meant to ask."""
    try:
        return read_policy(given)
    except RuleError as error:
        problems.append(f"{FILE}: {error}; until that is mended, every action is asked about")
        return PRESETS["ask"]


def _model(user: _ModelTable, local: _ModelTable, problems: list[str]) -> ModelChoice | None:
    """The model that environment and files name; the workspace's file counts before the user's."""
    given = {**user.model_dump(exclude_unset=True), **local.model_dump(exclude_unset=True)}
    budget = Budget(given.get("budget_usd"), given.get("budget_tokens"), given.get("budget_calls"))
    try:
        found = ModelChoice.from_environment(os.environ, name=given.get("name") or "")
    except ModelError as error:
        problems.append(error.message)
        return None
    # The environment's name counts before that of a file.
    name = os.environ.get("PILOTHOUSE_MODEL", "").strip() or given.get("name")
    repairs = REPAIRS if (set_to := given.get("repairs")) is None else set_to
    if found is None:
        return None
    return replace(found, budget=budget, name=name or found.name, repairs=repairs)


def _home(environ: Any) -> Path:
    chosen = environ.get("PILOTHOUSE_HOME")
    if chosen:
        return Path(chosen)
    try:
        config = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    except RuntimeError:  # no HOME, and a user that the system does not know
        config = "/nonexistent"
    return Path(config) / "pilothouse"


def _operator() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "operator"
    return "".join(char for char in name if char.isalnum() or char in "-_.")[:32] or "operator"


def _read(path: Path, problems: list[str]) -> _File:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return _File()
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}")
        return _File()
    if len(content) > SIZE_LIMIT:
        problems.append(f"{path.name} is larger than {SIZE_LIMIT // 1024} KiB and was left out")
        return _File()
    try:
        return _File.model_validate(tomllib.loads(content.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problems.append(f"{path.name}: {error}; the file was left out{_closed(content)}")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        problems.append(f"{path.name}: {where}: {first['msg']}; the file was left out{_closed(content)}")
    return _File(approvals={"preset": "ask"}) if _closed(content) else _File()


def _closed(content: bytes) -> str:
    """What is said where a file that is left out has approvals: they are not left out with it."""
    return ", and every action is asked about" if b"[approvals" in content else ""
