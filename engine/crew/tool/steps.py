"""A pipeline's checkpoints and a guided agent's steps: each call is one move of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from engine.core.actions import ToolResult
from engine.core.agents import GUIDED, NOTE, PIPELINE, RETURNED, WANTED
from engine.core.text import StrictJsonError, read_json
from engine.crew.methods import dialogue as guided
from engine.crew.methods import pipeline
from engine.crew.ontology.context import Answer, Option, options_of
from engine.crew.ontology.criteria import Subject, failed, failure_text
from engine.crew.ontology.kinds import Effect, ErrorCode, RequestKind
from engine.crew.ontology.spec import GuidedStep, Phase
from engine.crew.thinker.run_plan import pipeline_of, values_of
from engine.crew.tool.tool_call import ToolCall, call_refused, call_succeeded, complete_subject, sources_of

PHASE, STEP = "pipeline.phase", "guided.step"

# ------------------------------------------------------------------ checkpoints

_ON_FAIL = options_of(
    ("retry", "try again", Effect.RETRY),
    ("edit", "write the outputs yourself; they are checked again", Effect.RESUME, "must"),
    ("accept", "accept it anyway; say why", Effect.ACCEPT, "must"),
    ("abort", "end the pipeline", Effect.ABORT),
)


_TOLD = {
    "committed": "committed",
    "skipped": "skipped",
    "retry": "tries again:",
    "ask_user": "asks you:",
    "abort": "ends:",
}
"""The result of a checkpoint, as it is recorded."""


async def checkpoint(work: ToolCall) -> ToolResult:
    """End the phase under way: what it gave is checked, and committed where it holds."""
    spec, text = work.handoff.spec, str(work.args.get("output") or "")
    run = pipeline_of(work.brief, work.beliefs)
    phase = pipeline.next_phase(spec.phases, run)
    if phase is None or work.beliefs.get(RETURNED):
        return call_succeeded("every phase is over")
    outputs = dict(work.args.get("outputs") or {}) or _outputs(phase, text)
    values = values_of(work.handoff.context)
    seen = await complete_subject(
        work, phase.checkpoint.criteria, Subject(text, outputs, _sources(work, run))
    )
    while True:
        result = pipeline.checkpoint(spec.phases, values, run, outputs, seen=seen)
        held = result.run.model_dump(mode="json")
        await work.keep(PHASE, {PIPELINE: held}, f"{phase.id}: {_TOLD[result.what]} {result.message}".strip())
        if result.what in ("committed", "skipped"):
            return await _committed(work, phase, result)
        if result.what == "retry":
            wrong = list(map(failure_text, failed(result.outcomes)))
            return call_refused(result.message, beliefs={PIPELINE: held}, failed=wrong)
        if result.what == "abort":
            return await _aborted(work, phase, result, outputs)
        answer = await _ask_about(work, phase, result, outputs)
        match answer.option_id or "edit":
            case "retry":
                again = result.run.model_copy(update={"attempts": {}}).model_dump(mode="json")
                return call_refused(
                    f"the operator wants another try: {result.message}", beliefs={PIPELINE: again}
                )
            case "accept" if answer.text.strip():
                accepted = pipeline.accept_anyway(
                    spec.phases, values, run, outputs, answer.text, result.outcomes
                )
                return await _committed(work, phase, pipeline.Next(accepted, "committed", result.outcomes))
            case "abort":
                return await _aborted(work, phase, result, outputs)
            case "edit" if answer.text.strip():
                run, outputs, text = result.run, _outputs(phase, answer.text), answer.text
                subject = Subject(text, outputs, seen.sources)
                seen = await complete_subject(work, phase.checkpoint.criteria, subject)
            case _:
                run = result.run  # without words nothing follows: it is asked again


def _sources(work: ToolCall, run: pipeline.PipelineRun) -> dict[str, str]:
    """What a phase can cite: what was given, and whatever has an id in what committed phases gave."""
    sources = sources_of(work)
    for value in run.outputs().values():
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, Mapping) and entry.get("id"):
                words = (str(texts) for name, texts in entry.items() if name != "id")
                sources[str(entry["id"])] = "\n".join(words)
    return sources


async def _ask_about(
    work: ToolCall, phase: Phase, result: pipeline.Next, outputs: Mapping[str, Any]
) -> Answer:
    checks = [check.line for check in result.outcomes if check.hard and not check.passed]
    edited = {"args": {"outputs": dict(outputs)}}
    return await work.ask(
        RequestKind.DECISION,
        "checkpoint",
        f"{phase.name}: its checkpoint is not passed",
        "\n".join((result.message, *checks)),
        context="retry, write the outputs yourself, accept them with a reason, or end the pipeline",
        options=tuple(kind.model_copy(update=edited) if kind.id == "edit" else kind for kind in _ON_FAIL),
    )


def _outputs(phase: Phase, text: str) -> dict[str, Any]:
    """Outputs as a person or a model wrote them: a JSON object by name, or the text where there is one."""
    try:
        given = read_json(text)
    except StrictJsonError:
        given = None
    if isinstance(given, Mapping) and set(given) & set(phase.outputs):
        return dict(given)
    return {phase.outputs[0]: text} if len(phase.outputs) == 1 and text.strip() else {}


async def _committed(work: ToolCall, phase: Phase, next_: pipeline.Next) -> ToolResult:
    held = next_.run.model_dump(mode="json")
    await work.keep(PHASE, {PIPELINE: held}, f"{phase.id}: {next_.what}")
    if work.steps and len(next_.run.records) < len(work.handoff.spec.phases):
        options = options_of(("go_on", "go on", Effect.RESUME), ("abort", "end the pipeline", Effect.ABORT))
        title = f"{phase.name} is {next_.what}"
        answer = await work.ask(RequestKind.DECISION, "pipeline.step", title, "Go on?", options=options)
        if answer.option_id == "abort":
            return await _aborted(work, phase, next_, {})
    results = [result.model_dump(mode="json") for result in next_.outcomes]
    return call_succeeded(
        f"{phase.name} is {next_.what}", beliefs={PIPELINE: held}, phase=phase.id, criteria=results
    )


async def _aborted(
    work: ToolCall, phase: Phase, next_: pipeline.Next, outputs: Mapping[str, Any]
) -> ToolResult:
    why = next_.message or "the operator ended it"
    kept = {**next_.run.outputs(), **outputs}
    result = work.failing(
        ErrorCode.CHECKPOINT, f"{phase.name}: {why}", data=kept, quality=next_.outcomes, partial=bool(kept)
    )
    return await work.give(result, **{PIPELINE: next_.run.model_dump(mode="json")})


# ------------------------------------------------------------------ guided steps

_MOVES = {
    "back": ("back", Effect.RESUME),
    "skip": ("skip this step; say why, or nothing", Effect.SKIP),
    "jump": ("jump to a step", Effect.RESUME),
    "suggest": ("have a draft written", Effect.RESUME),
    "confirm": ("the stale answer still holds", Effect.RESUME),
    "leave": ("save and leave", Effect.RESUME),
    "finish": ("finish", Effect.ACCEPT),
}
"""Moves besides an answer: an answer of the operator names one as its option, with its words as text."""
_WORDS: Mapping[str, Literal["may", "must"]] = {"skip": "may", "jump": "must"}
"""Which of them go with words: why it is skipped, the step to jump to."""
TAKE = Option(id="take", label="take the draft", effect=Effect.ACCEPT)


async def ask(work: ToolCall) -> ToolResult:
    """Ask the step that is next, and make the operator's move; a refused move changes nothing."""
    steps = work.handoff.spec.steps
    session = _session(work)
    draft = str(work.args.get("draft") or "").strip()
    answer = await _ask_step(work, session, draft)
    move, value = _said(answer)
    step_id, finished, note = None, False, ""
    try:
        if move == "suggest":
            step_id = session.active
        elif move == "finish":
            guided.finish(steps, session)
            finished = True
        else:
            session = _moved(steps, session, move, draft if move == TAKE.id else value)
    except guided.MoveRefused as error:
        note = str(error)
    held = session.model_dump(mode="json")
    await work.keep(STEP, {GUIDED: held}, note or move)
    beliefs = {GUIDED: {**held, "finished": finished}, WANTED: step_id, NOTE: note or None}
    at = f"; next: {session.active}" if session.active else ""
    return call_succeeded(
        f"refused: {note}" if note else f"{move}{at}", beliefs=beliefs, move=move, refused=note
    )


def _session(work: ToolCall) -> guided.GuidedSession:
    steps = work.handoff.spec.steps
    kept = work.brief.read(work.beliefs, GUIDED, guided.GuidedSession)
    if kept is None:
        return guided.begin(steps)
    return kept if GUIDED in work.beliefs else guided.resume(steps, kept)


def _said(answer: Answer) -> tuple[str, Any]:
    """The move that an answer is, and its value: chosen as an option, or JSON as `GuidedMove` gives it."""
    if answer.option_id:
        return answer.option_id, answer.text
    try:
        given = read_json(answer.text)
    except StrictJsonError:
        return "answer", answer.text
    if not isinstance(given, Mapping):
        return "answer", given if isinstance(given, list) else answer.text
    if given.get("move") not in (*_MOVES, "answer", "save"):
        return "answer", answer.text
    move = str(given["move"])
    words = {"skip": given.get("reason"), "jump": given.get("step"), "confirm": given.get("step")}
    return ("leave" if move == "save" else move), words[move] if move in words else given.get("value")


def _moved(
    steps: tuple[GuidedStep, ...], session: guided.GuidedSession, move: str, value: Any
) -> guided.GuidedSession:
    words = str(value or "")
    match move:
        case "back":
            return guided.back(steps, session)
        case "skip":
            return guided.skip(steps, session, words)
        case "jump":
            return guided.jump(steps, session, words.strip())
        case "confirm":
            return guided.confirm(steps, session, words.strip())
        case "leave":
            return guided.leave(session)
    return guided.answer(steps, session, value)


async def _ask_step(work: ToolCall, session: guided.GuidedSession, draft: str) -> Answer:
    spec = work.handoff.spec
    step = next((step for step in spec.steps if step.id == session.active), None)
    done_with = sum(state.status is not guided.StepStatus.PENDING for state in session.steps.values())
    lines = [f"{done_with} of {len(spec.steps)} steps are done"]
    if note := work.beliefs.get(NOTE):
        lines.append(f"not done: {note}")
    if work.beliefs.get(WANTED) and not draft:
        lines.append("there is no draft: writing one needs a model")
    if draft:
        lines.append(f"draft: {draft}")
    lines += guided.unfinished(spec.steps, session) if step is None else ()
    moves = [
        Option(id=name, label=label, effect=effect, words=_WORDS.get(name, ""))
        for name, (label, effect) in _MOVES.items()
    ]
    return await work.ask(
        RequestKind.QUESTION,
        STEP,
        step.title if step is not None else "every step was gone through",
        (step.prompt or step.title) if step is not None else "Finish, or go back to a step?",
        context="\n".join(lines),
        options=(*([TAKE.model_copy(update={"args": {"draft": draft}})] if draft else []), *moves),
    )
