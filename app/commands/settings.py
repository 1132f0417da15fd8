"""Settings: command line, environment, workspace file, user file, defaults, in this order.

A file that is wrong never keeps the cockpit from starting: what is wrong is said, and left out.
That is why pydantic-settings does not read them: it refuses all sources where one is wrong.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from app.commands.settings_tables import (
    MastermindTable,
    MemoryTable,
    ModelsTable,
    NotifyTable,
    OnLost,
    SettingsFile,
    WebTable,
    seconds_of,
)
from app.commands.user import NETWORK, operator_name, state_home, user_home
from engine.agent.shared import EngineConfig
from engine.agent.steering.reviews import SETTINGS as REVIEWER
from engine.agent.steering.reviews import ReviewerChoice
from engine.agent.steering.rules import PRESETS, RuleError, read_policy
from engine.core.approvals import Policy
from engine.core.budgets import SpendingLimits
from engine.core.crew import CrewSettings
from engine.core.improvement import MastermindSettings
from engine.core.store.places import open_plain
from engine.core.text import clean_line, first_problem
from engine.core.trust import FolderTrust
from engine.inquiry.notices import Rule
from engine.models.choice import REPAIRS, ModelChoice
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
NAMED = 3
"""How many files that are not trusted a line names."""


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
        file = SettingsFile.model_validate(given) if given else SettingsFile.model_construct()
        own = SettingsFile.model_validate(user.table) if user.table else SettingsFile.model_construct()
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


def _mastermind(table: MastermindTable) -> MastermindSettings:
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


def _model(table: ModelsTable, models: ModelTable | None, problems: list[str]) -> ModelChoice | None:
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
        SettingsFile.model_validate(table)
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
