"""Settings: command line, environment, workspace file, user file, defaults, in this order.

A file that is wrong never keeps the cockpit from starting: what is wrong is said, and left out.
That is why pydantic-settings does not read them: it refuses all sources where one is wrong.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app.commands.user import NETWORK, operator_name, state_home, user_home
from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.shared import RECORDED_PACE, EngineConfig
from engine.agent.steering.reviews import SETTINGS as REVIEWER
from engine.agent.steering.reviews import ReviewerChoice
from engine.agent.steering.rules import PRESETS, RuleError, read_policy
from engine.core.approvals import Policy
from engine.core.budgets import AMOUNT_LIMITS, BudgetKind, SpendingLimits
from engine.core.crew import CrewSettings
from engine.core.improvement import MastermindSettings
from engine.core.store.places import open_plain
from engine.core.text import clean_line, first_problem
from engine.core.trust import FolderTrust
from engine.inquiry.notices import Rule
from engine.model import LateModel
from engine.models.choice import REPAIRS, REPAIRS_LIMIT, ModelChoice
from engine.models.errors import ModelError
from engine.sandbox.policy import Network, SandboxPolicy, Tier
from engine.value import dataclass, field, fields, fields_of, replace

if TYPE_CHECKING:
    from engine.memory.embedder_choice import EmbedderChoice
    from engine.models.model_table import ModelTable

FILE = "pilothouse.toml"
MODELS = "models.toml"
"""What the operator says of models, in the workspace and beside the user's own settings."""
ENDPOINTS = "endpoints.json"
"""What endpoints said of themselves, in the directory of what may be lost."""
OWN = ("web", "notify", "memory")
"""Tables that count in the user's own file only: a workspace opens no port, runs nothing, sends no text."""
SIZE_LIMIT = 256 * 1024
DENY_AFTER = "deny_after"
"""In `[approvals]`: how long an approval may wait before it is denied by itself."""
_DURATION = re.compile(r"(\d{1,6})(s|m|h|d)")
_UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
NAMED = 3
"""How many files that are not trusted a line names."""


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


class _ModelTable(_Table):
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


class _MastermindTable(_Table):
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


class _File(_Table):
    approvals: dict[str, Any] = Field(default_factory=dict)
    """What agents ask about (`engine.agent.steering.rules`)."""
    budget: _BudgetTable = Field(default_factory=_BudgetTable.model_construct)
    model: _ModelTable = Field(default_factory=_ModelTable.model_construct)
    sandbox: _SandboxTable = Field(default_factory=_SandboxTable.model_construct)
    mastermind: _MastermindTable = Field(default_factory=_MastermindTable.model_construct)
    crew: _CrewTable = Field(default_factory=_CrewTable.model_construct)
    keeping: _KeepingTable = Field(default_factory=_KeepingTable.model_construct)
    cockpit: _CockpitTable = Field(default_factory=_CockpitTable.model_construct)
    serve: _ServeTable = Field(default_factory=_ServeTable.model_construct)
    web: WebTable = Field(default_factory=WebTable.model_construct)
    notify: NotifyTable = Field(default_factory=NotifyTable.model_construct)
    memory: MemoryTable = Field(default_factory=MemoryTable.model_construct)


@dataclass(frozen=True, slots=True)
class Settings(EngineConfig):
    """What the operator chose: how a workspace is opened, and how the cockpit is."""

    theme: str | None = None
    tour: bool = True
    keys: dict[str, str] = field(default_factory=dict)
    notify: Rule = Rule.DONE
    """What the operator is notified of."""
    on_lost: OnLost = OnLost.GO_ON
    web: WebTable = field(default_factory=WebTable)
    away: NotifyTable = field(default_factory=NotifyTable)
    """Where the operator is told of what waits."""
    operator: str = "operator"
    """Name under which commands are recorded."""
    network: Network = Network.OFF
    accept_paths: bool = False
    home: Path = field(default_factory=user_home)
    problems: tuple[str, ...] = ()
    """What is wrong with the files, in sentences."""

    @classmethod
    def load(cls, workspace: Path, *, theme: str | None = None, trust: str = "") -> Settings:
        """The settings for a workspace; blocking.

        Args:
            workspace: its directory, whose own settings only tighten the user's where they are not trusted.
            theme: colours that go before those of the settings.
            trust: the digest of what is in the directory, to be trusted from now on.

        Raises:
            TrustError: it has not that digest, or cannot be trusted.
        """
        home = user_home()
        problems: list[str] = []
        folder = FolderTrust(workspace, home)
        if trust:
            if why := folder.trust(trust):
                problems.append(f"trusted until this program ends: {why}")
            folder.reopen()
        user, local = (
            _read(place / FILE, name, problems)
            for place, name in ((home, str(home / FILE)), (workspace, FILE))
        )
        # The file is read once more, so what was read is looked at: it may have been changed meanwhile.
        trusted = local.content is None or (not folder.restricted and folder.admits(FILE, local.content))
        beside = Policy() if trusted else _approvals(local.table.get("approvals", {}), problems)
        given = _over(user.table, local.table if trusted else tightened(user.table, local.table))
        # Without any file nothing is to be checked, and no validator is built.
        file = _File.model_validate(given) if given else _File.model_construct()
        own = _File.model_validate(user.table) if user.table else _File.model_construct()
        problems += [
            f"{FILE}: [{name}] counts in your own settings only" for name in OWN if name in local.table
        ]
        accepting = (user.table, local.table) if trusted else (user.table,)
        accepted = any(each.get("sandbox", {}).get("accept_paths") for each in accepting)
        return cls(
            theme=theme or os.environ.get("PILOTHOUSE_THEME") or file.cockpit.theme,
            tour=file.cockpit.tour,
            keys=file.cockpit.keys,
            notify=file.cockpit.notify,
            on_lost=file.serve.on_lost,
            network=file.sandbox.network,
            accept_paths=accepted,
            snapshots=file.sandbox.snapshots,
            web=own.web,
            away=own.notify,
            approvals=_approvals(file.approvals, problems),
            deny_after_s=_deny_after((user.table, local.table), problems),
            reviewer=_reviewer(user.table, local.table, problems),
            folder_approvals=beside,
            trust=folder,
            operator=operator_name(),
            model=_model(file.model, _models(home, workspace, folder, problems), problems),
            embedder=_embedder(own.memory, problems),
            rewrite=own.memory.rewrite,
            recorded_pace=file.model.recorded_pace,
            budget=file.budget.limits,
            agent_budget=file.budget.agent.limits,
            disk_mb=file.keeping.disk_mb,
            keep_days=file.keeping.days,
            journal_mb=file.keeping.journal_mb,
            mastermind=_mastermind(file.mastermind),
            crew=replace(CrewSettings(), **_given(file.crew)),
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
        said = Network(os.environ[NETWORK]) if os.environ.get(NETWORK) in list(Network) else self.network
        granted = Network.PORTS if network and said is Network.OFF else said
        opened = fields_of(self, *(each.name for each in fields(EngineConfig)))
        opened |= {"policy": policy.with_network(granted), "model": self.model if model else None}
        return EngineConfig(**opened)


def load_and_say(workspace: Path, *, trust: str = "") -> Settings:
    """The settings for a workspace, for a command line: what is wrong with them goes to standard error."""
    settings = Settings.load(workspace, trust=trust)
    sys.stderr.writelines(f"{clean_line(problem, limit=1_000)}\n" for problem in settings.problems)
    return settings


def _over(user: dict[str, Any], local: dict[str, Any]) -> dict[str, Any]:
    """The user's settings with the workspace's over them, table by table; approvals count as a whole."""
    merged = dict(user)
    for name, value in local.items():
        both = name != "approvals" and isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _over(merged[name], value) if both else value
    return merged


def untrusted_line(trust: FolderTrust | None) -> str:
    """What of a folder does not count as it was opened, and how it is trusted; empty where all counts."""
    if trust is None or not (trust.restricted or trust.foreign):
        return ""
    names = [*trust.untrusted, *(["its journal"] if trust.foreign else [])]
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return (
        f"restricted: you do not trust {named} of this folder, which can only tighten here; "
        f"pilothouse trust shows what each would change, --trust {trust.digest} trusts it"
    )


def tightened(user: Mapping[str, Any], folder: Mapping[str, Any]) -> dict[str, Any]:
    """What of a folder's settings is tighter than the user's own, or the defaults; all else is left out.

    Approvals are no part of it: they count beside the user's own, and of both the stricter answer.
    """
    tighter: dict[str, Any] = {}
    for name, (usual, order) in _TIGHTER.items():
        now, wish = _setting(user, name), _setting(folder, name)
        if wish is not None and order(wish) < order(usual if now is None else now):
            table = tighter
            *above, last = name.split(".")
            for part in above:
                table = table.setdefault(part, {})
            table[last] = wish
    return tighter


def _setting(table: Mapping[str, Any], name: str) -> Any:
    value: Any = table
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _amount(value: Any) -> Decimal:
    return Decimal("Infinity") if value is None else Decimal(str(value))


_CAMPAIGN = MastermindSettings().budget
_TIGHTER: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "sandbox.network": ("off", [each.value for each in (Network.OFF, Network.PORTS, Network.ON)].index),
    "sandbox.snapshots": ("required", ["required", "off"].index),
    **dict.fromkeys(
        (
            *(f"budget.{name}" for name in ("usd", "tokens", "calls", "actions", "seconds")),
            *(f"budget.agent.{name}" for name in ("usd", "tokens", "calls", "actions", "seconds")),
            *(f"model.{name}" for name in ("budget_usd", "budget_tokens", "budget_calls")),
        ),
        (None, _amount),
    ),
    "mastermind.candidates": (_CAMPAIGN.candidates, _amount),
    "mastermind.seconds": (_CAMPAIGN.seconds, _amount),
    "mastermind.usd": (_CAMPAIGN.usd, _amount),
    "crew.model_calls": (CrewSettings().model_calls, _amount),
    "keeping.disk_mb": (None, _amount),
}
"""Settings by which a folder can only tighten: what holds without them, and their order from the tightest."""


def _given(table: BaseModel) -> dict[str, Any]:
    """What stands in a table of the file."""
    return {name: value for name, value in table if value is not None}


def _mastermind(table: _MastermindTable) -> MastermindSettings:
    """How the system improves itself."""
    given, usual = _given(table), MastermindSettings()
    amounts = {name: given.pop(name) for name in ("candidates", "seconds", "usd") if name in given}
    return replace(usual, budget=replace(usual.budget, **amounts), **given)


def _reviewer(
    user: Mapping[str, Any], local: Mapping[str, Any], problems: list[str]
) -> ReviewerChoice | None:
    """Who looks at what the operator would be asked; nobody where that cannot be read, and they are asked."""
    if any(name in REVIEWER for name in local.get("approvals", {})):
        problems.append(
            f"{FILE}: approvals: a reviewer counts in your own settings only, not in a workspace's"
        )
    try:
        return ReviewerChoice.read(user.get("approvals", {}))
    except ValueError as error:
        problems.append(f"{FILE}: approvals: {error}; until that is mended, nobody reviews")
        return None


def _approvals(given: dict[str, Any], problems: list[str]) -> Policy:
    """The policy of the file; one that cannot be read asks about everything, as it was meant to ask."""
    try:
        return read_policy(
            {name: value for name, value in given.items() if name not in (*REVIEWER, DENY_AFTER)}
        )
    except RuleError as error:
        problems.append(f"{FILE}: {error}; until that is mended, every action is asked about")
        return PRESETS["ask"]


def _deny_after(tables: Iterable[Mapping[str, Any]], problems: list[str]) -> float | None:
    """The shortest of the times that the files say, as denying sooner is stricter; None where none does."""
    given = []
    for table in tables:
        if (text := table.get("approvals", {}).get(DENY_AFTER)) is not None:
            try:
                given.append(seconds_of(text))
            except ValueError as error:
                problems.append(
                    f"{FILE}: approvals: {DENY_AFTER}: {error}; until that is mended, it is left out"
                )
    return min(given, default=None)


def _models(home: Path, workspace: Path, folder: FolderTrust, problems: list[str]) -> ModelTable | None:
    """What the operator says of models, the workspace's before the user's own; None where nothing is said.

    The workspace's counts where the folder is trusted: a price that is too low would loosen its budgets.
    """
    contents = [_content(place / MODELS, problems) for place in (workspace, home)]
    if not any(contents):
        return None
    from engine.models.model_table import ModelTable, read_models  # late: few have one

    local, own = contents
    if local is not None and (folder.restricted or not folder.admits(MODELS, local)):
        local = None
    tables = [read_models(local, MODELS, problems)] if local is not None else []
    tables += [read_models(own, str(home / MODELS), problems)] if own is not None else []
    return ModelTable(tuple(row for table in tables for row in table.rows))


def _model(table: _ModelTable, models: ModelTable | None, problems: list[str]) -> ModelChoice | None:
    """The model that environment and files name; the environment's name counts before that of a file."""
    name = os.environ.get("PILOTHOUSE_MODEL", "").strip() or table.name or ""
    try:
        choice = ModelChoice.from_environment(os.environ, name=name, url=table.url, api=table.api or "")
    except ModelError as error:
        problems.append(error.message)
        return None
    if choice is None:
        return None
    return replace(
        choice,
        budget=SpendingLimits(table.budget_usd, table.budget_tokens, table.budget_calls),
        repairs=REPAIRS if table.repairs is None else table.repairs,
        roles={str(role): name for role, name in table.roles.items()},
        fallback=table.fallback,
        table=models,
        memory=state_home() / ENDPOINTS,
    )


def _embedder(table: MemoryTable, problems: list[str]) -> EmbedderChoice | None:
    """What turns memories into vectors; None where it cannot be used."""
    if table.embedder in (None, "none"):
        return None
    from engine.memory.embedder_choice import EmbedderChoice  # late: most have none
    from engine.memory.embedding import EmbedderError  # late: most have none

    try:
        return EmbedderChoice.chosen(table.embedder, table.model, table.key_file, os.environ)
    except EmbedderError as error:
        problems.append(f"{FILE}: memory: {error}; until that is mended, words alone find memories")
        return None


def user_table(home: Path | None) -> dict[str, Any]:
    """What stands in the user's own settings file; blocking."""
    return _read(home / FILE, FILE, []).table if home is not None else {}


@dataclass(frozen=True, slots=True)
class _Given:
    """What a settings file says."""

    table: dict[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    """The file as it was read; None where there is none."""


def _content(path: Path, problems: list[str]) -> bytes | None:
    """What stands in a file, at most a little more than the limit; None where there is none."""
    try:
        with open_plain(path) as file:
            return file.read(SIZE_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}")
        return None


def _read(path: Path, name: str, problems: list[str]) -> _Given:
    """A settings file; nothing of it where it is wrong, which is said."""
    content = _content(path, problems)
    return _Given() if content is None else _Given(read_table(content, name, problems), content)


def read_table(content: bytes, name: str, problems: list[str]) -> dict[str, Any]:
    """What stands in a settings file; nothing where it is wrong, which is said."""
    if len(content) > SIZE_LIMIT:
        problems.append(f"{name} is larger than {SIZE_LIMIT // 1024} KiB and was left out")
        return {}
    try:
        table = tomllib.loads(content.decode())
        _File.model_validate(table)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        wrong = str(error)
    except ValidationError as error:
        wrong = first_problem(error)
    else:
        return table
    # A file that asks for approvals is not left out with them.
    asks = b"[approvals" in content
    every = ", and every action is asked about" if asks else ""
    problems.append(f"{name}: {wrong}; the file was left out{every}")
    return {"approvals": {"preset": "ask"}} if asks else {}
