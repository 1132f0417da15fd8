"""The specification of an agent type (`AgentSpec`), one YAML file on the disk, and the files of its skill.

`engine.crew.ontology.spec_parser` reads one, with the defaults of its type, and reports everything wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from engine.crew.ontology.context import SLOT_LEAST, SLOTS, ProblemClarity, Slot
from engine.crew.ontology.kinds import (
    AgentType,
    Check,
    Effort,
    HandoffType,
    InputKind,
    Line,
    Lines,
    OnFail,
    OntologyValue,
    OutputFormat,
    ReturnBehavior,
    Share,
    ThinkingMode,
    Tier,
    Words,
)
from engine.value import dataclass, field

OPENED_MOST = 8
"""Files that a run may have open."""
TEXT_LIMIT = 60_000
"""Characters of a file that are shown."""


_FOLDER = r"(?:CLAUDE_)?(?:skill[-_ ]?(?:base[-_]?)?(?:dir(?:ectory)?|root|path|folder)|base[-_]?dir"
_FOLDER += r"|path[-_]to[-_](?:this[-_])?skill)"
VARIABLE = re.compile(
    rf"\$?\{{\{{?\s*{_FOLDER}\s*\}}?\}}|<{_FOLDER}>|\$(?-i:[A-Z_]*SKILL_(?:DIR|ROOT|PATH))\b"
    r"|\$\{CLAUDE_PLUGIN_ROOT\}/skills/(?P<skill>[\w.-]+)",
    re.I,
)
"""Names that skills have for their own directory."""


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """What lies beside a SKILL.md: read on demand, never changed."""

    folder: str
    """Where they lie; programs of the run may read there, and nothing may write."""
    sizes: Mapping[str, int]
    """Bytes of each by its path in the folder, sorted."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What stands in those that the run has opened, by path, in the order in which it did."""

    def resolved(self, text: str) -> str:
        """The text with the skill's directory where it names it by a variable, as `{baseDir}`."""
        own = (None, PurePath(self.folder).parent.name)
        return VARIABLE.sub(lambda match: self.folder if match["skill"] in own else match[0], text)


KEBAB = r"^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$"
SEMVER = r"^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$"
ANYBODY: Literal["*"] = "*"

Id = Annotated[str, StringConstraints(pattern=KEBAB)]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
Ids = tuple[str, ...]


class Criterion(OntologyValue):
    """A check of an output: `{check: min_items, field: reasons, n: 2}`.

    What it says besides its fields are the arguments of the check.
    """

    check: Check
    field: str = ""
    """What is looked at: a field of the structured answer; empty is the output."""
    hard: bool = True
    """Whether an output that fails it is sent back; else it is a warning."""
    message: str = ""
    """What the agent is told when it fails; by default the check in words."""
    args: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        known = {key: value for key, value in given.items() if key in cls.model_fields}
        further = {key: value for key, value in given.items() if key not in cls.model_fields}
        if further:
            known["args"] = {**known.get("args", {}), **further}
        return known


class ModelChoice(OntologyValue):
    """Which model is to think, and how."""

    tier: Tier = Tier.DEFAULT
    id: str | None = None
    max_tokens: int = Field(default=4096, ge=64, le=128_000)
    effort: Effort | None = None
    thinking: ThinkingMode = ThinkingMode.OFF
    thinking_budget: int | None = None
    temperature: float | None = Field(default=None, ge=0.0, le=1.0)


class Instructions(OntologyValue):
    """What the model is told. Large texts are files of the agent's folder (`*_file`), never in code."""

    system: Words = ""
    system_file: str = ""
    """A file of the agent's folder that holds the system text, byte for byte the skill's body."""
    methodology: Words = ""
    output_template: Words = ""
    quality_criteria: tuple[Criterion, ...] = ()
    behavioral_rules: Lines = ()
    tone: str = ""


class Receives(OntologyValue):
    """What an agent needs before it begins."""

    requires_what: bool = True
    requires_who: bool = False
    requires_success: bool = False
    min_clarity: Share = 0.5
    accepts_previous: tuple[str, ...] | Literal["*"] = ANYBODY
    accepts_focus_areas: bool = True
    accepts_conversation: bool = True

    @property
    def required(self) -> tuple[Slot, ...]:
        """The slots of clarity that it needs."""
        return tuple(slot for slot in SLOTS if getattr(self, f"requires_{slot}"))

    def refusal(self, clarity: ProblemClarity) -> str:
        """Why a problem is not clear enough; empty when it is."""
        for slot in self.required:
            if not (clarity.text(slot) or "").strip():
                return f"{slot} is not said"
            if clarity.score(slot) < SLOT_LEAST:
                return f"{slot} is not clear enough: {clarity.score(slot):.2f} < {SLOT_LEAST}"
        if not self.required:
            return ""
        mean = round(sum(map(clarity.score, self.required)) / len(self.required), 9)
        if mean < self.min_clarity:
            return f"{', '.join(self.required)} are not clear enough: {mean:.2f} < {self.min_clarity}"
        return ""


class Returns(OntologyValue):
    """What an agent answers with."""

    output_format: OutputFormat = OutputFormat.MARKDOWN
    key_findings: bool = True
    recommendations: bool = True
    confidence_score: bool = True
    score_names: tuple[str, ...] = ()
    suggested_next: bool = True
    open_questions: bool = True


class Routing(OntologyValue):
    """Who calls it, whom it calls, and what happens to its answer."""

    can_delegate_to: Ids = ()
    can_be_called_by: tuple[str, ...] | Literal["*"] = ANYBODY
    default_return_to: str = ""
    return_behavior: ReturnBehavior = ReturnBehavior.SYNTHESIZE

    def admits(self, caller: str) -> bool:
        """Whether an agent may call it."""
        return self.can_be_called_by == ANYBODY or caller in self.can_be_called_by


class Supports(OntologyValue):
    """Which handoffs it takes part in."""

    delegate: bool = True
    transfer: bool = False
    return_: bool = Field(default=True, alias="return")
    escalate: bool = True

    model_config = OntologyValue.model_config | {"populate_by_name": True, "serialize_by_alias": True}

    def takes(self, kind: HandoffType) -> bool:
        """Whether a handoff of this type may come to it."""
        takes: bool = getattr(self, "return_" if kind is HandoffType.RETURN else kind.value)
        return takes


class Handoffs(OntologyValue):
    """Its side of the handoff protocol."""

    receives: Receives = Receives()
    returns: Returns = Returns()
    routing: Routing = Routing()
    supports: Supports = Supports()


class ServerUse(OntologyValue):
    """Tools of an MCP server."""

    server: str = Field(min_length=1, max_length=64)
    tools: tuple[str, ...] = ("*",)
    required: bool = False


NO_FUNCTIONS = "functions and actions of an agent's own are not called any more; serve them by an MCP server"
"""Why an agent that names `custom_tools` or `global_actions` is not built."""


class Tools(OntologyValue):
    """What it may call."""

    mcp_servers: tuple[ServerUse, ...] = ()
    custom_tools: tuple[dict[str, Any], ...] = ()
    global_actions: tuple[dict[str, Any], ...] = ()
    """These two are of version 0.1."""
    local: tuple[str, ...] = ()
    """Commands of the engine's own tools, as `simple_coder.read`; what skills allow is mapped to these."""
    degraded: tuple[str, ...] = ()
    """Servers that were down when the agent was built, and are not required."""


class RoleRules(OntologyValue):
    """What a role's reply is held to (`methods.role.lint`); a clarifier's where nothing is said."""

    max_words: int = Field(default=100, ge=1, le=5_000)
    questions: int | None = Field(default=1, ge=0)
    """How many each reply asks; none for any number."""
    lists: bool = False
    recommends: bool = False
    """Whether it may recommend before the problem is ready."""


class SubAgent(OntologyValue):
    """One of the views of a collaborative agent."""

    id: Id
    role: Line
    instructions: Words = ""
    required: bool = False
    criteria: tuple[Criterion, ...] = ()
    """What its output must satisfy."""
    weight: float = Field(default=1.0, gt=0.0, le=10.0)
    model: ModelChoice | None = None


class Checkpoint(OntologyValue):
    """What holds at the end of a phase."""

    criteria: tuple[Criterion, ...] = ()
    on_fail: OnFail = OnFail.RETRY
    max_retries: int = Field(default=2, ge=0, le=10)


class Phase(OntologyValue):
    """One phase of a pipeline."""

    id: Key
    name: Line
    description: Words = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    checkpoint: Checkpoint = Checkpoint()
    tools: tuple[str, ...] = ()
    sub_agents: Ids = ()


class GuidedStep(OntologyValue):
    """One step that is asked of the operator."""

    id: Key
    title: Line
    prompt: Words = ""
    input: InputKind = InputKind.TEXT
    options: tuple[str, ...] = ()
    required: bool = False
    skippable: bool = True
    validators: tuple[Criterion, ...] = ()
    depends_on: tuple[str, ...] = ()
    suggest: str = ""
    """What a model is told when the operator wants a draft."""

    @property
    def may_skip(self) -> bool:
        """Whether it can be passed over."""
        return self.skippable and not self.required


class Side(OntologyValue):
    """One side of a debate."""

    label: str = Field(min_length=1, max_length=32)
    agent_id: str
    stance: Line


class DebateSpec(OntologyValue):
    """How a motion is argued and judged."""

    motion: str = ""
    """A decidable sentence; empty takes it from the task."""
    sides: tuple[Side, ...] = Field(min_length=2, max_length=4)
    judge_agent: str = "judge"
    rounds: int = Field(default=2, ge=1, le=4)
    max_words: int = Field(default=250, ge=20, le=2_000)
    blind_openings: bool = True
    order_swap: bool = True
    early_stop: bool = True
    evidence: Literal["required", "preferred", "off"] = "preferred"

    @model_validator(mode="after")
    def _judge_is_nobodys(self) -> Self:
        labels = [side.label for side in self.sides]
        if len(set(labels)) < len(labels):
            raise ValueError("sides: their labels must differ")
        if self.judge_agent in {side.agent_id for side in self.sides}:
            raise ValueError("judge_agent: a side does not judge")
        return self

    @property
    def calls(self) -> int:
        """Model calls that it takes at most, without repairs."""
        return len(self.sides) * (1 + self.rounds) + 2


class Weighed(OntologyValue):
    """An agent with the weight of an edge to it."""

    id: str
    weight: float = Field(default=0.5, gt=0.0, le=1.0)


class ProblemFit(OntologyValue):
    """A type of problem with how well the agent suits it."""

    type: str
    confidence: Share = 0.5


class Triggers(OntologyValue):
    """What the agent is found by."""

    keywords: Annotated[tuple[Line, ...], Field(max_length=20)] = ()
    problem_types: tuple[ProblemFit, ...] = ()


class Chaining(OntologyValue):
    """Its place among others."""

    follows: tuple[Weighed, ...] = ()
    precedes: tuple[Weighed, ...] = ()
    alternatives: Ids = ()
    enhances: Ids = ()


class SpecMetadata(OntologyValue):
    """Where it comes from."""

    author: str = ""
    source: str = ""
    source_sha256: str = ""
    created: str = ""
    modified: str = ""
    license: str = ""


class AgentSpec(OntologyValue):
    """A type of agent; read it with `engine.crew.ontology.spec_parser.parse_spec`."""

    id: Id
    name: Line
    type: AgentType
    version: Annotated[str, StringConstraints(pattern=SEMVER)] = "1.0.0"
    description: str = Field(min_length=1, max_length=20_000)
    tags: tuple[str, ...] = ()
    model: ModelChoice = ModelChoice()
    instructions: Instructions = Instructions()
    handoff: Handoffs = Handoffs()
    tools: Tools = Tools()
    done_by: str = Field(default="", max_length=64)
    """The agent of this workspace that does its work in the place of a model: another program, or one in
    AgentSpeak(L), as the operator created it. Empty where a model does (`engine.crew.members`)."""
    role: RoleRules = RoleRules()
    sub_agents: tuple[SubAgent, ...] = ()
    quorum: int | None = Field(default=None, ge=1)
    """Sub-agents that must answer; by default half of them, rounded up."""
    synthesizer: str = "synthesizer"
    phases: tuple[Phase, ...] = ()
    steps: tuple[GuidedStep, ...] = ()
    debate: DebateSpec | None = None
    compute: str = ""
    """The computation whose numbers overwrite the model's (`engine.crew.ontology.results`), as `pws` or
    `jtbd`."""
    selectable: bool = True
    """Whether selection may offer it; internal agents say no."""
    triggers: Triggers = Triggers()
    chaining: Chaining = Chaining()
    graph: dict[str, Any] = Field(default_factory=dict)
    memory: dict[str, Any] = Field(default_factory=dict)
    metadata: SpecMetadata = SpecMetadata()

    @property
    def least(self) -> int:
        """Sub-agents that must answer."""
        return self.quorum if self.quorum is not None else -(-len(self.sub_agents) // 2)
