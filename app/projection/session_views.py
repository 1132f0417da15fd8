"""The models of the dialog on a guided session, a debate, a pipeline or a build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.projection.fleet_views import (
    first_request,
    handoff_status,
    handoff_style,
    handoff_title,
    last_transition,
    moment_text,
    value_text,
)
from engine.core.agents import DEBATE, GUIDED, PIPELINE, RECORDING
from engine.core.text import clean_line
from engine.crew.builder.findings import BuildResult, Finding, Level, Status
from engine.crew.builder.findings import PhaseRecord as BuildRecord
from engine.crew.builder.phases import PHASES
from engine.crew.builder.registration import spec_text
from engine.crew.methods import dialogue
from engine.crew.methods.debate import Claim, Debate, Turn, begin, with_rounds
from engine.crew.methods.debate_judge import Verdict
from engine.crew.methods.dialogue import GuidedSession, StepStatus
from engine.crew.methods.pipeline import PhaseRecord, PipelineRun, next_phase
from engine.crew.ontology.context import HumanRequest
from engine.crew.ontology.kinds import HandoffState, InputKind
from engine.crew.ontology.results import CriterionResult
from engine.crew.ontology.spec import GuidedStep, Phase
from engine.crew.state import CrewState, Handoff
from engine.value import replace
from widgets.base.asked import Asked, AskOption
from widgets.base.facts import Section
from widgets.base.rows import Row, heading
from widgets.base.text_layout import Piece
from widgets.dialogs.session import PART, SessionModel, SessionRequest

Texts = tuple[tuple[str, tuple[Section, ...]], ...]


def has_view(handoff: Handoff) -> bool:
    """Whether there is a dialog for what a handoff does."""
    spec = handoff.spec
    return spec is not None and (spec.type in ("guided", "pipeline") or spec.debate is not None)


def session(state: CrewState, handoff: Handoff, now: datetime, message: str = "") -> SessionModel:
    """A guided session, a debate or a pipeline as its run kept it last.

    Args:
        state: what the crew knows.
        handoff: one that `has_view`.
        now: what time it is, aware.
        message: the result of the last key.
    """
    assert handoff.spec is not None
    rows, texts, stand, head = _VIEWS.get(handoff.spec.type, _debate)(state, handoff)
    requests = list(state.open_requests(handoff.id))
    may: frozenset[SessionRequest] = frozenset({"step_mode", "end"}) if handoff.open else frozenset()
    steps = " · step mode" if handoff.as_running.steps and handoff.spec.type != "guided" else ""
    recorded = "RECORDED" if RECORDING in handoff.context.metadata else ""
    model = SessionModel(
        handoff.id,
        handoff_title(handoff),
        " · ".join(filter(None, (handoff_status(handoff), recorded, stand))) + steps,
        head,
        rows,
        texts,
        first_request(requests, now) if requests else None,
        may=may,
        why_not=_why_not(handoff),
        said=message,
    )
    return _with_step(model, handoff, requests) if handoff.spec.type == "guided" else model


def _why_not(handoff: Handoff) -> str:
    if not handoff.open:
        return f"it is over ({handoff.state.words})"
    if handoff.state is HandoffState.PAUSED:
        return "it was saved and waits; H, then space, resumes it"
    return "nothing is asked now; it continues by itself"


def _row(key: str, mark: str, text: str, *, tail: str = "", style: str = "strong", most: int = 2) -> Row:
    return Row(
        key,
        (Piece(clean_line(text, limit=400), style),),
        tail=(Piece(clean_line(tail, limit=80), handoff_style(mark)),) if tail else (),
        mark=Piece(mark, handoff_style(mark)),
        most=most,
        indent=2,
        copy=clean_line(f"{text} {tail}").strip(),
    )


# ------------------------------------------------------------------ guided sessions

_MARKS = {StepStatus.ANSWERED: "✓", StepStatus.SKIPPED: "»", StepStatus.STALE: "!", StepStatus.PENDING: "·"}


def session_of(handoff: Handoff) -> GuidedSession:
    """The session as it was kept last."""
    kept = handoff.progress.get(GUIDED)
    if isinstance(kept, dict):
        return GuidedSession.loaded(kept)
    return dialogue.begin(handoff.spec.steps if handoff.spec is not None else ())


def _guided(state: CrewState, handoff: Handoff) -> tuple[tuple[Row, ...], Texts, str, str]:
    assert handoff.spec is not None
    steps, held = handoff.spec.steps, session_of(handoff)
    rows = tuple(_step_row(step, held) for step in steps)
    texts = tuple((step.id, _step_text(step, held)) for step in steps)
    at = next((at for at, step in enumerate(steps, 1) if step.id == held.active), len(steps))
    saved = last_transition(handoff, HandoffState.PAUSED)
    head = "" if held.active or not handoff.open else "Every step was gone through."
    if saved is not None and handoff.open:
        head = f"{head} It was saved {moment_text(saved.at)}.".strip()
    return rows, texts, f"{at}/{len(steps)}", head


def _step_row(step: GuidedStep, held: GuidedSession) -> Row:
    status = held.of(step.id).status
    here = step.id == held.active
    word = "now" if here else "" if status is StepStatus.PENDING else status.value
    return _row(step.id, "●" if here else _MARKS[status], step.title, tail=word)


def _step_text(step: GuidedStep, held: GuidedSession) -> tuple[Section, ...]:
    state = held.of(step.id)
    if state.status is StepStatus.SKIPPED:
        return (Section(f"{step.title}: skipped", state.reason, "text"),)
    if state.status is StepStatus.PENDING:
        return (Section(step.title, step.prompt, "text"),)
    stale = " (stale: something that it depends on has changed)" if state.status is StepStatus.STALE else ""
    return (Section(step.title + stale, value_text(state.value)),)


_HOW = {
    InputKind.CHOICE: "one of",
    InputKind.MULTI: "one or more, separated by commas, of",
    InputKind.NUMBER: "a number",
    InputKind.CONFIRM: "yes or no",
}


def _with_step(model: SessionModel, handoff: Handoff, requests: Sequence[HumanRequest]) -> SessionModel:
    """The step that is asked is answered in a field that opens by itself."""
    held = session_of(handoff)
    steps = {step.id: step for step in handoff.spec.steps} if handoff.spec is not None else {}
    step = steps.get(held.active or "")
    if step is None or model.asked is None or not requests[0].reason_code.startswith("guided"):
        return model
    take = next((option for option in requests[0].options if option.id == "take"), None)
    kept = held.of(step.id).value
    given = ", ".join(map(str, kept)) if isinstance(kept, list | tuple) else value_text(kept)
    options = " · ".join(f"{number} {option}" for number, option in enumerate(step.options, 1))
    how = " ".join(filter(None, (_HOW.get(step.input, ""), options)))
    need = "required" if step.required else "can be skipped" if step.may_skip else "cannot be skipped"
    question = f"{model.asked.question} ({'; '.join(filter(None, (need, how)))})"
    return replace(
        model,
        asked=replace(model.asked, question=question),
        writes="long" if step.input is InputKind.LONG_TEXT else "line",
        value=str(take.args.get("draft") or "") if take is not None else "" if kept is None else given,
    )


# ------------------------------------------------------------------ pipelines


def _pipeline(state: CrewState, handoff: Handoff) -> tuple[tuple[Row, ...], Texts, str, str]:
    assert handoff.spec is not None
    phases, run = handoff.spec.phases, run_of(handoff)
    rows = tuple(row for at, phase in enumerate(phases) for row in _phase_rows(phase, at, handoff, run))
    texts = [(record.phase, _record_text(record)) for record in run.records]
    now = next_phase(phases, run)
    drafts = [
        option.args["outputs"]
        for request in state.open_requests(handoff.id)
        for option in request.options
        if option.args.get("outputs")
    ]
    if now is not None and drafts:
        texts.append((now.id, _outputs(drafts[0], "not committed: its checkpoint is not passed")))
    return rows, tuple(texts), f"{len(run.records)} of {len(phases)} phases", ""


def run_of(handoff: Handoff) -> PipelineRun:
    """How far it is, as kept last."""
    kept = handoff.progress.get(PIPELINE)
    return PipelineRun.loaded(kept) if isinstance(kept, dict) else PipelineRun()


def check_lines(outcomes: Iterable[CriterionResult]) -> tuple[tuple[str, str], ...]:
    """Criteria, each as its mark and its text with what was measured."""
    return tuple((gate.line[0], gate.line[2:]) for gate in outcomes)


def _phase_rows(phase: Phase, at: int, handoff: Handoff, run: PipelineRun) -> Iterator[Row]:
    assert handoff.spec is not None
    current = next_phase(handoff.spec.phases, run) is phase
    checks = (check_lines(run.failures) if current else ()) or tuple(_required(phase))
    if at < len(run.records):
        record = run.records[at]
        mark, word, checks = "✓", "committed", check_lines(record.criteria)
        if record.skipped:
            mark, word = "»", "skipped"
        if record.accepted:
            mark, word = "!", f"accepted: {record.accepted}"
    elif current and handoff.open:
        wrong = any(failure.passed is False for failure in run.failures)
        tries = run.attempts.get(phase.id, 0)
        mark, word = ("✗", f"try {tries} failed") if wrong else ("▶", handoff.state.words)
    elif current and run.failures:
        mark, word = "✗", "its checkpoint failed"
    else:
        mark, word = ("·", "to come") if handoff.open else ("⊘", "not done")
    yield from _part_rows(
        phase.id, mark, ": ".join(filter(None, (phase.name, phase.description))), word, checks
    )


def _part_rows(key: str, mark: str, text: str, word: str, checks: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """A phase with its checks below it."""
    yield _row(key, mark, text, tail=word)
    for number, (sign, words) in enumerate(checks):
        pieces = (Piece(f"  {sign} ", handoff_style(sign)), Piece(clean_line(words, limit=400)))
        yield Row(f"{key}{PART}{number}", pieces, indent=4, most=3)


def _required(phase: Phase) -> Iterable[tuple[str, str]]:
    """What its checkpoint will look at."""
    for name in phase.outputs:
        yield "·", f"non_empty {name}"
    for criterion in phase.checkpoint.criteria:
        args = ", ".join(f"{key} {value_text(value)}" for key, value in criterion.args.items())
        yield "·", " ".join(filter(None, (criterion.check.value, criterion.field, args)))


def _record_text(record: PhaseRecord) -> tuple[Section, ...]:
    note = f"accepted although it failed: {record.accepted}" if record.accepted else ""
    return _outputs(record.outputs, note)


def _outputs(outputs: Mapping[str, Any], note: str) -> tuple[Section, ...]:
    notes = (note,) if note else ()
    sections = tuple(Section(name, _output(value), notes=notes) for name, value in outputs.items())
    return sections or (Section("no outputs", notes=notes),)


def _output(value: Any) -> str:
    """A value as text, each text of a list in a line of its own."""
    texts = isinstance(value, list) and all(isinstance(part, str) for part in value)
    return "\n".join(f"- {part}" for part in value) if texts else value_text(value)


# ------------------------------------------------------------------ debates


def _debate(state: CrewState, handoff: Handoff) -> tuple[tuple[Row, ...], Texts, str, str]:
    held = debate_of(handoff)
    if held is None:
        return (), (("", (Section("", "It has no debate."),)),), "", ""
    kept = handoff.progress.get("verdict")
    verdict = Verdict.loaded(kept) if isinstance(kept, dict) else None
    rows, texts = (
        [_row("verdict", *_outcome(held, verdict))],
        [("verdict", _judged(state, held, handoff, verdict))],
    )
    for number in sorted({turn.round for turn in held.turns}):
        name = "openings, each blind to the other" if number == 0 else f"round {number}"
        rows.append(heading(f"round {number}", f"── {name}"))
        for turn in held.turns:
            if turn.round == number:
                for key, row, text in _turn(held, turn):
                    rows.append(row)
                    texts.append((key, (text,)))
    sides = " · ".join(f"{side.label} {side.agent_id}: {side.stance}" for side in held.spec.sides)
    return tuple(rows), tuple(texts), _round(held, handoff), f"{held.motion}\n{sides}"


def debate_of(handoff: Handoff) -> Debate | None:
    """The debate of a handoff; before its first turn as it begins. None where its agent does not debate."""
    kept = handoff.progress.get(DEBATE)
    if isinstance(kept, dict) and "motion" in kept:
        return Debate.loaded(kept)
    spec = handoff.spec.debate if handoff.spec is not None else None
    motion = str(handoff.context.metadata.get("motion") or handoff.context.task_description)
    spec = with_rounds(spec, handoff.context.metadata) if spec is not None else None
    return begin(spec, motion) if spec is not None and (spec.motion or motion).strip() else None


def _round(held: Debate, handoff: Handoff) -> str:
    if held.ended:
        return f"ended after round {held.closed}: {held.ended}"
    if not handoff.open:
        what = "the openings" if held.closed < 0 else f"round {held.closed}"
        return f"{handoff.state.words} {'in' if held.closed < 0 else 'after'} {what}"
    if held.closed < 0:
        return f"openings under way, {held.rounds} rounds planned"
    return f"round {held.closed} of {held.rounds} is over"


def _outcome(held: Debate, verdict: Verdict | None) -> tuple[str, str]:
    """Mark and text of the row that stands above the turns."""
    if verdict is None:
        counts = ", ".join(f"{count} {name}" for name, count in held.ledger.items())
        return "·", counts or "no claim yet"
    contested = ", contested: the passes differ" if verdict.contested else ""
    mark = "!" if verdict.contested else "✓"
    return mark, f"verdict: {verdict.winner}, confidence {verdict.confidence:g}{contested}"


def _judged(state: CrewState, held: Debate, handoff: Handoff, verdict: Verdict | None) -> tuple[Section, ...]:
    """The counts, the verdict, the operator's beside it, the judge's passes, and the dissent."""
    counts = ", ".join(f"{count} {name}" for name, count in held.ledger.items())
    # A round that was cut off is not in the debate's own count.
    asked = max(held.calls, state.spent(handoff.id).calls)
    calls = f"{asked} of {len(held.labels) * (1 + held.rounds) + 2} calls"
    sections = [Section("Claims", f"{counts} · {calls}".lstrip(" ·"), "text")]
    if verdict is None:
        result = handoff.result
        why = str(result.end) if result is not None and result.error else ""
        return (*sections, Section("No verdict", why, "text")) if why else tuple(sections)
    sections.append(Section("Verdict", f"{_outcome(held, verdict)[1]}", "text"))
    decided = ", ".join(verdict.decisive) or "no claim"
    answers = [
        request.answer.text or str(request.answer.option_id)
        for request in state.requests.values()
        if request.handoff_id == handoff.id
        and request.reason_code == "DEBATE_CONTESTED"
        and request.answer is not None
    ]
    if yours := (answers[-1] if answers else verdict.operator):
        sections.append(Section("Yours", yours, "text"))
    orders = (held.labels, tuple(reversed(held.labels)))
    for at, judged in enumerate(verdict.passes):
        name = f"Pass {at + 1}, order {', '.join(orders[at % 2])}: {judged.winner} {judged.confidence:g}"
        lines = [f"decided by {', '.join(judged.decisive_claim_ids) or 'no claim'}"]
        lines += [f"{key}: {words}" for key, words in judged.reasons.items()]
        sections.append(Section(name, "\n".join(lines), "text"))
    dissent = "\n".join(verdict.dissent) or "none: nothing of it stands"
    return (*sections, Section(f"Decided by {decided}; dissent", dissent, "text"))


def _turn(held: Debate, turn: Turn) -> Iterator[tuple[str, Row, Section]]:
    """What a side said in a round: restated, answers, new claims, what was not taken."""
    cards = [("restated", "·", "restates", turn.restated)]
    cards += [
        (f"reply{number}", "·", f"→ {reply.claim} {reply.kind}s it", reply.text)
        for number, reply in enumerate(turn.replies)
    ]
    cards += [("none", "!", "no rebuttal", " ")] if turn.no_rebuttal else []
    cards += [_claim(claim) for ident in turn.claims if (claim := held.claim(ident)) is not None]
    cards += [
        ("for", "·", "recommends", turn.recommends),
        ("dropped", "!", "not taken", "; ".join(turn.dropped)),
    ]
    for name, mark, head, text in cards:
        if text:
            key = f"{turn.side}/{turn.round}/{name}"
            words = clean_line(f"{turn.side} {head}: {text}".rstrip(": "), limit=400)
            yield (
                key,
                _row(key, mark, words, style="text", most=3),
                Section(f"{turn.side} {head}", text, "text"),
            )


_CLAIM_MARKS = {"standing": "✓", "unverified": "?", "rebutted": "✗", "conceded": "⊘"}


def _claim(claim: Claim) -> tuple[str, str, str, str]:
    quotes = [
        f"{'✓ quoted' if quote.verified else '? unverified'}: “{quote.quote}” ({quote.source or 'no source'})"
        for quote in claim.evidence
    ]
    verified = all(quote.verified for quote in claim.evidence) and not claim.unverified
    evidence = "? unverified" if not verified else "✓ quoted" if quotes else "· no quote"
    head = f"{claim.id} {evidence} · {claim.status}"
    return claim.id, _CLAIM_MARKS[claim.shown], head, "\n\n".join((claim.text, *quotes))


_VIEWS = {"guided": _guided, "pipeline": _pipeline}

# ------------------------------------------------------------------ builds

_LATER = ("files", "registration")
"""The phases that write."""
_STANDING = {
    Status.BUILT: "✓ built",
    Status.UP_TO_DATE: "· up to date: nothing was written",
    Status.FAILED: "✗ failed",
    Status.NEEDS_OPERATOR: "? needs you",
    Status.DRY_RUN: "· dry run: nothing was registered",
}


def build(
    source: str, records: Sequence[BuildRecord], result: BuildResult | None = None, message: str = ""
) -> SessionModel:
    """A build while it runs, or as it ended.

    Args:
        source: what is built.
        records: the phases that are over.
        result: how it ended; None while it runs.
        message: the result of the last key.
    """
    records = result.phases if result is not None else records
    found = result.findings if result is not None else [each for one in records for each in one.findings]
    choice = result.choice if result is not None else None
    findings = sorted(found, key=lambda finding: finding.level is not Level.ERROR)
    rows = [*_build_rows(records, running=result is None, asks=choice is not None)]
    rows += [_finding(at, finding) for at, finding in enumerate(findings)]
    preview = spec_text(result.spec) if result is not None and result.spec is not None else ""
    text = preview or "It is there once the second phase has passed."
    asked = None
    if choice is not None:
        asked = Asked("build", "the build needs you", choice.question, tuple(map(AskOption, choice.options)))
    running = f"▶ running {records[-1].name if records else ''}".rstrip()
    texts = [
        (f"finding {at}", (Section(each.message, each.hint, "text"),)) for at, each in enumerate(findings)
    ]
    texts.append(("", (Section("agent.yaml", text),)))
    requests: tuple[SessionRequest, ...] = ("end",) if result is None else ("again",)
    return SessionModel(
        source,
        f"Build {clean_line(source, limit=100)}",
        _STANDING[result.status] if result is not None else running,
        _decision(records),
        tuple(rows),
        tuple(texts),
        asked,
        may=frozenset(requests),
        why_not="it is being built; x cancels it" if result is None else "nothing is being built",
        said=message or _ended(result),
    )


def _ended(result: BuildResult | None) -> str:
    if result is None:
        return ""
    spec = f"{result.spec.id} {result.spec.version}" if result.spec is not None else ""
    where = result.output_path
    return " · ".join(filter(None, (spec, where, f"it took {result.duration_seconds:.1f} s")))


def _build_rows(records: Sequence[BuildRecord], *, running: bool, asks: bool) -> Iterator[Row]:
    done = {record.number: record for record in records}
    for number, name in enumerate((*(name for name, _ in PHASES), *_LATER), 1):
        record = done.get(number)
        if record is not None and asks and number == len(records):
            mark, word = "?", "asks you"
        elif record is not None:
            mark, word = ("✓", "passed") if record.passed else ("✗", "failed")
            word += f" {record.duration_seconds:.1f} s"
        elif running and number == len(records) + 1:
            mark, word = "▶", "running"
        else:
            mark, word = "·", "to come" if running else "not begun"
        checks = record.checks if record is not None else ()
        lines = [
            ("✓" if check.passed else "✗", f"{check.name}  {check.measured}".rstrip()) for check in checks
        ]
        yield from _part_rows(f"phase {number}", mark, f"{number} {name}", word, lines)


def _finding(at: int, finding: Finding) -> Row:
    mark = "✗" if finding.level is Level.ERROR else "!"
    words = " ".join(filter(None, (finding.where, finding.code, finding.message)))
    return _row(f"finding {at}", mark, words, style="text", most=4)


def _decision(records: Sequence[BuildRecord]) -> str:
    """The type with the points of all five; where it is asked for, the question has them."""
    for record in records:
        for check in record.checks:
            if check.name == "type_determined":
                return f"type: {check.measured}"
    return ""
