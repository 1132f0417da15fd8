"""What may stand in a settings file, table by table."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import RECORDED_PACE
from engine.core.budgets import AMOUNT_LIMITS, BudgetKind, SpendingLimits
from engine.core.text import clean_line
from engine.inquiry.notices import Rule
from engine.model import LateModel
from engine.models.choice import REPAIRS_LIMIT
from engine.sandbox.policy import Network

_DURATION = re.compile(r"(\d{1,6})(s|m|h|d)")
_UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class _Table(BaseModel, metaclass=LateModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


class _CockpitTable(_Table):
    theme: str | None = None
    notify: Rule = Rule.DONE
    """`needs-you`: the bell and a notification when an agent needs the operator; `done`: when a goal ends,
    too; `off`: neither."""
    tour: bool = True
    """Whether the tour is offered to who has not seen it."""
    keys: dict[str, str] = Field(default_factory=dict)
    """Keys by binding id, such as `cockpit.step = "f10"`."""


class _SandboxTable(_Table):
    network: Network = Network.OFF
    """`off`, `ports` (HTTP and HTTPS with name look-up) or `on`."""
    accept_paths: bool = False
    """Run programs unconfined where the kernel offers no jail."""
    snapshots: SnapshotRule = SnapshotRule.REQUIRED
    """`required`: files are saved before each action that may change them; `off`."""


ModelName = Annotated[str, Field(min_length=1, max_length=200)]


class ModelsTable(_Table):
    """Which models think, and what they may cost."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    """The model that thinks, as its endpoint knows it."""
    url: str = Field(default="", max_length=500)
    """Where it is asked; the environment's counts before it."""
    api: Literal["messages", "openai"] | None = None
    """What the address speaks; found by trial where it is not said."""
    roles: dict[Literal["plan", "decide", "judge", "summarise"], ModelName] = Field(default_factory=dict)
    """Models of their own for what is asked."""
    fallback: tuple[ModelName, ...] = Field(default=(), max_length=8)
    """Models that are asked, in order, where one cannot answer."""
    budget_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars that each agent may spend; it is held before a call that could break it."""
    budget_tokens: int | None = Field(default=None, ge=0)
    budget_calls: int | None = Field(default=None, ge=0)
    repairs: int | None = Field(default=None, ge=0, le=REPAIRS_LIMIT, strict=True)
    """How often it may put right an answer that cannot be used, before planning has failed."""
    recorded_pace: int = Field(default=RECORDED_PACE, ge=0, le=999_999, strict=True)
    """Characters a second of recorded answers; 0 gives them at once."""


class _Amounts(_Table):
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

    agent: _Amounts = Field(default_factory=_Amounts.model_construct)
    """What each agent may take, with those that work for it."""


class MastermindTable(_Table):
    """How the system improves itself."""

    cooldown_s: float | None = Field(default=None, ge=0, le=31_536_000, allow_inf_nan=False)
    """How long what failed is left alone."""
    interval_s: float | None = Field(default=None, ge=0, le=86_400, allow_inf_nan=False)
    """Between two items of the backlog that is worked off by itself."""
    watch_s: float | None = Field(default=None, ge=0, le=31_536_000, allow_inf_nan=False)
    """Without effect: settings of 0.1 may have it."""
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


class _CrewTable(_Table):
    model_calls: int | None = Field(default=None, ge=1, le=64)
    """Model calls of all handoffs at a time."""
    built_ins: bool | None = None
    """Whether the agents that Pilothouse ships are there."""
    learn: bool | None = None
    """Whether selection learns from how earlier work ended."""


class _KeepingTable(_Table):
    disk_mb: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Megabytes that the data of the workspace may take; agents are held at it."""
    days: int | None = Field(default=None, ge=1, le=36_500)
    """Days after which long texts and large answers are archived."""
    journal_mb: int | None = Field(default=None, ge=1, le=1_000_000_000)
    """Megabytes that journal and blobs may take before the oldest of these are archived."""


class OnLost(StrEnum):
    """What agents do whose cockpit has lost its terminal."""

    GO_ON = "go-on"
    CLOSE = "close"


class _ServeTable(_Table):
    on_lost: OnLost = OnLost.GO_ON
    """`go-on`: while something runs, the engine goes on where the terminal is lost; `close`: it ends."""


def seconds_of(text: object) -> float:
    """A duration such as `30s`, `10m`, `2h` or `1d`, in seconds.

    Raises:
        ValueError: it is none, or no time at all.
    """
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None or not int(match[1]):
        raise ValueError(f"{clean_line(repr(text), limit=40)} is no duration: use one such as 30s, 10m or 2h")
    return float(match[1]) * _UNIT_S[match[2]]


Duration = Annotated[float, BeforeValidator(seconds_of)]


class WebTable(_Table):
    """How `serve --web` serves browsers; counts in the user's own settings only."""

    address: str = "127.0.0.1:8765"
    tls_cert: Path | None = None
    """The certificate with its chain, PEM."""
    tls_key: Path | None = None
    hosts: tuple[str, ...] = ()
    """Names of this machine that browsers may use, beside its addresses, `localhost` and its own name."""


class NotifyTable(_Table):
    """Where the operator is told of what waits for them; counts in the user's own settings only."""

    url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """A topic of ntfy or of what understands it."""
    command: tuple[str, ...] = ()
    """A program with its arguments, which gets the text."""
    after: Duration = 30.0
    """How long something waits before it is told."""
    click: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """The address that a notification opens; empty for that of `serve --web`."""


class MemoryTable(_Table):
    """How memories are found; counts in the user's own settings only."""

    embedder: str | None = Field(default=None, max_length=500)
    """`minilm`, or the address of an endpoint that answers `/embeddings`; `none` for words alone."""
    model: str | None = Field(default=None, max_length=200)
    """The endpoint's model."""
    key_file: Path | None = None
    """Where the endpoint's key stands; the environment goes before it."""
    rewrite: bool = False
    """Whether the model that thinks puts queries in other ways, and orders what is found."""


class SettingsFile(_Table):
    """A settings file."""

    approvals: dict[str, Any] = Field(default_factory=dict)
    """What agents ask about (`engine.agent.steering.rules`)."""
    budget: _BudgetTable = Field(default_factory=_BudgetTable.model_construct)
    model: ModelsTable = Field(default_factory=ModelsTable.model_construct)
    sandbox: _SandboxTable = Field(default_factory=_SandboxTable.model_construct)
    mastermind: MastermindTable = Field(default_factory=MastermindTable.model_construct)
    crew: _CrewTable = Field(default_factory=_CrewTable.model_construct)
    keeping: _KeepingTable = Field(default_factory=_KeepingTable.model_construct)
    cockpit: _CockpitTable = Field(default_factory=_CockpitTable.model_construct)
    serve: _ServeTable = Field(default_factory=_ServeTable.model_construct)
    web: WebTable = Field(default_factory=WebTable.model_construct)
    notify: NotifyTable = Field(default_factory=NotifyTable.model_construct)
    memory: MemoryTable = Field(default_factory=MemoryTable.model_construct)
