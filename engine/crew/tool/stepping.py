"""A pipeline's checkpoints and a guided agent's steps: each call is one move of the machine (§1.12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from engine.agents.computing import BUILD
from engine.agents.criteria import Subject, failed, fault
from engine.agents.human import Answer, Option
from engine.agents.kinds import Effect, ErrorCode, RequestKind
from engine.agents.methods import guided, pipeline
from engine.agents.spec import GuidedStep, Phase
from engine.crew.parts import Question
from engine.crew.tool import building
from engine.crew.tool.looking import whole
from engine.crew.tool.returning import sources_of
from engine.crew.tool.work import Work, done, refused
from engine.domain.action import ToolResult
from engine.domain.running import GUIDED, NOTE, PIPELINE, RETURNED, WANTED
from engine.domain.strict_json import StrictJsonError, read_json
from engine.domain.text import clean_line
from engine.thinkers.brief import values_of
from engine.thinkers.spec_methods import pipeline_of

PHASE, STEP = "pipeline.phase", "guided.step"

# ------------------------------------------------------------------ checkpoints

_ON_FAIL = (
    Option(id="retry", label="try again", effect=Effect.RETRY),
    Option(
        id="edit",
        label="write the outputs yourself; they are checked again",
        effect=Effect.RESUME,
        words="must",
    ),
    Option(id="accept", label="accept it anyway; say why", effect=Effect.ACCEPT, words="must"),
    Option(id="abort", label="end the pipeline", effect=Effect.ABORT),
)


_TOLD = {
    "committed": "committed",
    "skipped": "skipped",
    "retry": "tries again:",
    "ask_user": "asks you:",
    "abort": "ends:",
}
"""What came of a checkpoint, as it is noted."""


async def checkpoint(work: Work) -> ToolResult:
    """End the phase under way: what it gave is checked, and committed where it holds."""
    spec, text = work.handoff.spec, str(work.args.get("output") or "")
    run = pipeline_of(work.brief, work.beliefs)
    phase = pipeline.under_way(spec.phases, run)
    if phase is None or work.beliefs.get(RETURNED):
        return done("every phase is over")
    if spec.compute == BUILD:
        built = await building.built(work, len(run.records) + 1)
        if not built.passed:
            found = pipeline.Next(run, "abort", message=built.said)
            return await _aborted(work, phase, found, {key: dict(built.data) for key in phase.outputs})
        found = pipeline.checkpoint(
            spec.phases,
            values_of(work.handoff.context),
            run,
            {key: dict(built.data) for key in phase.outputs},
            seen=Subject(built.said),
        )
        return await _committed(work, phase, found)
    outputs = dict(work.args.get("outputs") or {}) or _outputs(phase, text)
    values = values_of(work.handoff.context)
    seen = await whole(work, phase.checkpoint.criteria, Subject(text, outputs, _sources(work, run)))
    while True:
        found = pipeline.checkpoint(spec.phases, values, run, outputs, seen=seen)
        held = found.run.model_dump(mode="json")
        await work.keep(PHASE, {PIPELINE: held}, f"{phase.id}: {_TOLD[found.what]} {found.message}".strip())
        if found.what in ("committed", "skipped"):
            return await _committed(work, phase, found)
        if found.what == "retry":
            wrong = list(map(fault, failed(found.outcomes)))
            return refused(found.message, beliefs={PIPELINE: held}, failed=wrong)
        if found.what == "abort":
            return await _aborted(work, phase, found, outputs)
        answer = await work.desk.ask(work.run, _question(phase, found.message, outputs))
        match answer.option_id or "edit":
            case "retry":
                again = found.run.model_copy(update={"attempts": {}}).model_dump(mode="json")
                return refused(f"the operator wants another try: {found.message}", beliefs={PIPELINE: again})
            case "accept" if answer.text.strip():
                accepted = pipeline.accept_anyway(
                    spec.phases, values, run, outputs, answer.text, found.outcomes
                )
                return await _committed(work, phase, pipeline.Next(accepted, "committed", found.outcomes))
            case "abort":
                return await _aborted(work, phase, found, outputs)
            case "edit" if answer.text.strip():
                run, outputs, text = found.run, _outputs(phase, answer.text), answer.text
                subject = Subject(text, outputs, seen.sources)
                seen = await whole(work, phase.checkpoint.criteria, subject)
            case _:
                run = found.run  # without words nothing follows: it is asked again


def _sources(work: Work, run: pipeline.PipelineRun) -> dict[str, str]:
    """What a phase can cite: what was given, and whatever has an id in what committed phases gave."""
    found = sources_of(work)
    for value in run.outputs().values():
        for one in value if isinstance(value, list) else ():
            if isinstance(one, Mapping) and one.get("id"):
                words = (str(said) for name, said in one.items() if name != "id")
                found[str(one["id"])] = "\n".join(words)
    return found


def _question(phase: Phase, why: str, outputs: Mapping[str, Any]) -> Question:
    return Question(
        kind=RequestKind.DECISION,
        reason_code="checkpoint",
        title=clean_line(f"{phase.name}: its checkpoint is not passed", limit=80),
        question=why,
        context="retry, write the outputs yourself, accept them with a reason, or end the pipeline",
        options=tuple(
            one.model_copy(update={"args": {"outputs": dict(outputs)}}) if one.id == "edit" else one
            for one in _ON_FAIL
        ),
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


async def _committed(work: Work, phase: Phase, found: pipeline.Next) -> ToolResult:
    held = found.run.model_dump(mode="json")
    await work.keep(PHASE, {PIPELINE: held}, f"{phase.id}: {found.what}")
    if work.steps and len(found.run.records) < len(work.handoff.spec.phases):
        options = (
            Option(id="go_on", label="go on", effect=Effect.RESUME),
            Option(id="abort", label="end the pipeline", effect=Effect.ABORT),
        )
        title = clean_line(f"{phase.name} is {found.what}", limit=80)
        answer = await work.desk.ask(
            work.run, Question(RequestKind.DECISION, "pipeline.step", title, "Go on?", options=options)
        )
        if answer.option_id == "abort":
            return await _aborted(work, phase, found, {})
    said = [one.model_dump(mode="json") for one in found.outcomes]
    return done(f"{phase.name} is {found.what}", beliefs={PIPELINE: held}, phase=phase.id, criteria=said)


async def _aborted(work: Work, phase: Phase, found: pipeline.Next, outputs: Mapping[str, Any]) -> ToolResult:
    why = found.message or "the operator ended it"
    kept = {**found.run.outputs(), **outputs}
    result = work.failing(
        ErrorCode.CHECKPOINT, f"{phase.name}: {why}", data=kept, quality=found.outcomes, partial=bool(kept)
    )
    return await work.give(result, **{PIPELINE: found.run.model_dump(mode="json")})


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


async def ask(work: Work) -> ToolResult:
    """Ask the step that is next, and make the operator's move; a refused move changes nothing."""
    steps = work.handoff.spec.steps
    session, changed = _session(work)
    draft = str(work.args.get("draft") or "").strip()
    answer = await work.desk.ask(work.run, _step_question(work, session, draft, changed))
    move, value = _said(answer)
    wanted, finished, note = None, False, ""
    try:
        if move == "suggest":
            wanted = session.active
        elif move == "finish":
            guided.finish(steps, session)
            finished = True
        else:
            session = _moved(steps, session, move, draft if move == TAKE.id else value)
    except guided.MoveRefused as error:
        note = str(error)
    held = session.model_dump(mode="json")
    await work.keep(STEP, {GUIDED: held}, note or move)
    beliefs = {GUIDED: {**held, "finished": finished}, WANTED: wanted, NOTE: note or None}
    at = f"; next: {session.active}" if session.active else ""
    return done(f"refused: {note}" if note else f"{move}{at}", beliefs=beliefs, move=move, refused=note)


def _session(work: Work) -> tuple[guided.GuidedSession, tuple[str, ...]]:
    """The session, and what changed in the agent since it was saved."""
    steps = work.handoff.spec.steps
    kept = work.brief.read(work.beliefs, GUIDED, guided.GuidedSession)
    if kept is None:
        return guided.begin(steps), ()
    if GUIDED in work.beliefs:
        return kept, ()
    return guided.resume(steps, kept)


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
    match move:
        case "back":
            return guided.back(steps, session)
        case "skip":
            return guided.skip(steps, session, str(value or ""))
        case "jump":
            return guided.jump(steps, session, str(value or "").strip())
        case "confirm":
            return guided.confirm(steps, session, str(value or "").strip())
        case "leave":
            return guided.leave(session)
        case _:
            return guided.answer(steps, session, value)


def _step_question(
    work: Work, session: guided.GuidedSession, draft: str, changed: tuple[str, ...]
) -> Question:
    spec = work.handoff.spec
    step = next((one for one in spec.steps if one.id == session.active), None)
    done_with = sum(state.status is not guided.StepStatus.PENDING for state in session.steps.values())
    lines = [f"{done_with} of {len(spec.steps)} steps are done", *changed]
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
    return Question(
        kind=RequestKind.QUESTION,
        reason_code=STEP,
        title=clean_line(step.title if step is not None else "every step was gone through", limit=80),
        question=(step.prompt or step.title) if step is not None else "Finish, or go back to a step?",
        context="\n".join(lines),
        options=(*([TAKE.model_copy(update={"args": {"draft": draft}})] if draft else []), *moves),
    )
