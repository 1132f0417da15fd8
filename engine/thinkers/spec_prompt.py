"""The prompt of a run: its specification's instructions, what was handed to it, what it has gathered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.agents.kinds import AgentType
from engine.agents.methods import pipeline
from engine.agents.prompting import to_prompt
from engine.agents.skill_files import SkillFiles
from engine.agents.spec import AgentSpec, Criterion
from engine.domain.fence import RULE, fence, visible
from engine.domain.running import CREW, DEBATE, GUIDED, REPAIRS, ROLE, TURNS, VIEWS, WANTED
from engine.domain.thinking import DecisionRequest, RecentAction
from engine.journal.event import canonical
from engine.models import Message, Text
from engine.thinkers.brief import Brief, quotable, values_of
from engine.thinkers.spec_methods import GIVEN, TERMINAL, pipeline_of
from engine.thinkers.spec_reader import ends_by_words
from engine.thinkers.spec_tools import READ_SKILL, RUN, phase_of

RECENT_LIMIT, SOURCE_LIMIT = 40_000, 50_000
"""Characters of the newest calls with their answers."""
LISTED_MOST = 100
"""Files of a skill that are listed by name."""
_HOUSE = f"""You work on one handoff among other agents, while an operator watches. Each time you are asked
you call one tool; its answer is shown to you when you are asked again. Do what the task asks and nothing
more; leave out what you do not know and never make anything up.

{RULE}"""


def system_blocks(
    spec: AgentSpec, tools_in_words: str = "", files: SkillFiles | None = None
) -> tuple[Text, ...]:
    """What stays the same for a run."""
    said = spec.instructions
    parts = [
        f"You are {visible(spec.name)}: {visible(spec.description)}",
        visible(said.system).strip(),
        _titled("How you work", said.methodology),
        _titled("The form of your output", said.output_template),
        _titled("Rules", "\n".join(f"- {line}" for line in said.behavioral_rules)),
        _titled("Tone", said.tone),
        _titled("What your output is checked for", "\n".join(map(_criterion, said.quality_criteria))),
        _titled("Scores that you give by name", ", ".join(spec.handoff.returns.score_names)),
        _titled("Files that came with these instructions", _listing(spec, files)),
    ]
    instructions = "\n\n".join(part for part in parts if part)
    blocks = (
        Text(f"{_HOUSE}\n{ends_by_words(spec.type)}", "house"),
        Text(instructions, "instructions", cache=True),
    )
    return (*blocks, Text(tools_in_words, "tools")) if tools_in_words else blocks


def _listing(spec: AgentSpec, files: SkillFiles | None) -> str:
    """Their names: what stands in them is told when they are opened."""
    if files is None:
        return ""
    lines = [f"- {path} ({size:,} bytes)" for path, size in [*files.sizes.items()][:LISTED_MOST]]
    if (more := len(files.sizes) - LISTED_MOST) > 0:
        lines.append(f"- and {more:,} more")
    how = "Open one with read_skill when the instructions point to it, and not before."
    if any(one.partition(" ")[0] == RUN for one in spec.tools.local):
        how += f" Programs that you run can read them in {files.folder}, and write nothing there."
    return "\n".join((how, *lines))


def _titled(title: str, text: str) -> str:
    return f"## {title}\n{visible(text).strip()}" if text.strip() else ""


def _criterion(one: Criterion) -> str:
    if one.message:
        return f"- {one.message}"
    where = one.field or "output"
    args = ", ".join(f"{name} {value}" for name, value in one.args.items())
    return f"- {where}: {one.check}{f' ({args})' if args else ''}"


def question(brief: Brief, request: DecisionRequest, files: SkillFiles | None = None) -> Message:
    """What is to be decided now."""
    opened = files.texts if files is not None else {}
    blocks = [Text(f"## {path}\n{visible(text)}", f"file {path}") for path, text in opened.items()]
    blocks += [Text(to_prompt(brief.context), "handoff"), *_gathered(brief, request)]
    if done := "\n\n".join(_done(action) for action in request.recent if not _told(action)):
        title = "what you called lately, oldest first, and what came of it"
        blocks.append(Text(fence(title, done, limit=RECENT_LIMIT), "recent"))
    repairs = request.beliefs.get(REPAIRS)
    if isinstance(repairs, Mapping):
        blocks.append(_to_repair(repairs))
    elif request.trouble:
        wrong = fence("what went wrong and is not settled, oldest first", "\n".join(request.trouble))
        blocks.append(Text(f"{wrong}\n{request.advice}".rstrip(), "trouble"))
    if request.findings:
        blocks.append(Text("\n".join(request.findings), "findings"))
    if request.guidance:
        said = "\n".join(f"* {visible(one)}" for one in request.guidance)
        blocks.append(Text(f"The operator says:\n{said}", "guidance"))
    blocks.append(Text(f"To be done now: {request.step.description}", "step"))
    return Message("user", tuple(blocks))


def _gathered(brief: Brief, request: DecisionRequest) -> Iterator[Text]:
    """What the run has by now, as material."""
    beliefs = request.beliefs
    given = brief.context.metadata.get(GIVEN)
    if given is not None:
        yield Text(fence("what was given with the task", canonical(given)), "given")
    for name, text in quotable(brief.context.metadata).items():
        about = f"source {name}, to be quoted word for word"
        yield Text(fence(about, text, limit=SOURCE_LIMIT), f"source {name}")
    phase = phase_of(brief, request.step)
    if phase is not None:
        yield from _of_phase(brief, phase.id, beliefs)
    if brief.spec.type is AgentType.ROLE:
        yield from _of_role(beliefs)
    yield from _views(beliefs.get(VIEWS))
    if beliefs.get(WANTED):
        yield from _of_guided(brief, str(beliefs[WANTED]), beliefs)
    if beliefs.get(DEBATE) is not None:
        yield Text(fence("the debate", canonical(beliefs[DEBATE])), "debate")


def _of_phase(brief: Brief, phase_id: str, beliefs: Mapping[str, Any]) -> Iterator[Text]:
    run = pipeline_of(brief, beliefs)
    phase = next(one for one in brief.spec.phases if one.id == phase_id)
    inputs = pipeline.inputs_of(phase, values_of(brief.context), run)
    for name, value in inputs.items():
        text = value if isinstance(value, str) else canonical(value)
        yield Text(fence(f"input {name}", text), f"input {name}")
    if run.failures:
        yield Text(
            f"Your last try was not taken. Put exactly this right:\n{pipeline.failures_told(run)}", "repair"
        )
    names = ", ".join(phase.outputs) or "its result"
    listed = "\n".join(map(_criterion, phase.checkpoint.criteria))
    checks = f"\nIt is checked for:\n{listed}" if listed else ""
    said = f"The phase {visible(phase.name)}: {visible(phase.description)}\nIts outputs: {names}{checks}"
    yield Text(said, "phase")


def _of_role(beliefs: Mapping[str, Any]) -> Iterator[Text]:
    state = beliefs.get(ROLE)
    if isinstance(state, Mapping):
        known = fence("what is known of the problem", canonical(state.get("clarity", {})))
        yield Text(known, "clarity")
        if ideas := state.get("parked"):
            yield Text(fence("ideas that are parked for later", "\n".join(map(str, ideas))), "parked")
    turns = beliefs.get(TURNS) or ()
    if turns:
        said = "\n".join(f"{turn['role']}: {turn['text']}" for turn in turns)
        yield Text(fence("what was said, oldest first", said), "conversation")


def _views(views: Any) -> Iterator[Text]:
    for view in views or ():
        title = f"view {view['id']} ({view['role']})"
        if not view.get("ok"):
            yield Text(f"Missing: {title}: {visible(str(view.get('error', '')))[:300]}", "missing")
            continue
        found = "\n".join(f"finding: {line}" for line in view.get("key_findings", ()))
        yield Text(fence(title, f"{view['output']}\n{found}".strip()), f"view {view['id']}")
    if views:
        names = ", ".join(view["id"] for view in views)
        yield Text(
            f"Name each view in your synthesis ({names}), and each that is missing as missing.", "rule"
        )


def _of_guided(brief: Brief, step_id: str, beliefs: Mapping[str, Any]) -> Iterator[Text]:
    step = next((one for one in brief.spec.steps if one.id == step_id), None)
    if step is None:
        return
    session = beliefs.get(GUIDED)
    yield Text(fence("the operator's answers so far", canonical(session or {})), "answers")
    wanted = f"Draft an answer to this step for the operator: {step.title}\n{step.prompt}\n{step.suggest}"
    yield Text(wanted.strip(), "draft")


def _to_repair(repairs: Mapping[str, Any]) -> Text:
    wrong = "\n".join(f"- {visible(str(line))}" for line in repairs.get("what", ()))
    draft = fence("what you wanted to return", canonical(repairs.get("draft", {})))
    return Text(f"{draft}\nIt was not taken. Put exactly this right, and keep the rest:\n{wrong}", "repair")


def _told(action: RecentAction) -> bool:
    """Whether a call is told in another block already."""
    if action.command == READ_SKILL:
        return action.ok
    return action.tool == CREW and action.command in (*TERMINAL, "gather", "ask", "update_clarity")


def _done(action: RecentAction) -> str:
    outcome = "succeeded" if action.ok else "FAILED"
    call = f"{action.tool} {action.command} {canonical(action.args)[:1_000]}"
    return f"{action.action}: {call}\n{outcome}: {action.answer}"


def words_for(tools: Sequence[Any]) -> str:
    """The tools for a model that knows none."""
    lines = [
        canonical({"tool": one.name, "what": one.description, "input": one.input_schema}) for one in tools
    ]
    return (
        'Answer with one JSON object {"tool": name, "input": {…}} and nothing else. '
        "The tools, with the JSON Schema of their input:\n" + "\n".join(lines)
    )
