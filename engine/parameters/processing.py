"""The stages in order: components, paths, corrections, extraction, defaults, validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from engine.domain.action import ErrorCode
from engine.domain.parameters import SHOWN, Correction, Extraction, Stage, StageRecord, Survey, shown
from engine.domain.ports import CommandSpec, Parameter
from engine.parameters import components, paths
from engine.parameters.paths import Enquiry
from engine.parameters.settings import ProcessingSettings
from engine.parameters.values import named_right, typed_right
from engine.tools.arguments import Checked, Problem, check_arguments, expectation

OFF = "switched off in the agent's configuration"


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a step has it, and what it is for."""

    spec: CommandSpec
    args: dict[str, Any]
    goal: str = ""
    """The text of the goal that the step serves."""
    cwd: str = "."
    settings: ProcessingSettings = field(default_factory=ProcessingSettings)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the stages made of a call."""

    checked: Checked
    """With the arguments as they are now, also where there are problems."""
    corrections: tuple[Correction, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    missing: tuple[Parameter, ...] = ()
    """What a model may be asked for: required, and given nowhere."""
    telling: bool = False
    """Whether anything came of it that is worth a record."""


def enquire(call: Call) -> Enquiry:
    """What has to be looked up in the workspace before the call can be processed."""
    if not call.settings.enable_path_correction:
        return Enquiry()
    args = _read(call).args
    asked = paths.questions(call.spec, args, call.goal)
    lacking = _lacking_path(call.spec, args) is not None
    if not asked and not lacking:
        return Enquiry()
    names = components.references(call.goal)
    return Enquiry(asked, names, for_missing=lacking and bool(names))


def process(call: Call, survey: Survey, extraction: Extraction | None = None) -> Outcome:
    """The call after all stages; nothing is changed that can mean more than one thing.

    Args:
        call: as its step has it; what a model found is among its arguments by then.
        survey: the answer to `enquire(call)`.
        extraction: what a model was asked and found, when one was.
    """
    draft = _read(call)
    draft.corrections[:0] = _found(extraction)
    enquiry = enquire(call)
    for question in enquiry.paths:
        if question.argument in survey.missing:
            draft.take(paths.put_right(call.spec.name, question, call.cwd, survey))
    draft.take(_from_goal(call, draft.args, enquiry, survey))
    stages = [
        _components(call, enquiry, survey),
        _paths(call, enquiry, survey),
        _corrections(draft),
        _extraction(call, extraction),
    ]
    return _validated(call, draft, stages, survey, extraction)


def unmendable(spec: CommandSpec, args: Mapping[str, Any]) -> tuple[Problem, ...]:
    """What is wrong with arguments and stays wrong whatever the workspace or the goal says.

    What is missing is left out: the goal may say it, or the operator may.
    """
    draft = _read(Call(spec, dict(args)))
    lacking = {parameter.name for parameter in _lacking(spec, draft.args)}
    found = check_arguments(spec, draft.args).problems
    return tuple(problem for problem in found if problem.argument not in lacking)


# ------------------------------------------------------------------ the draft


@dataclass(slots=True)
class _Draft:
    """Arguments on their way through the stages."""

    args: dict[str, Any]
    corrections: list[Correction]
    problems: list[Problem]
    notes: list[str] = field(default_factory=list)
    """What could not be put right, in words."""

    def take(self, found: Correction | Problem | str | None) -> None:
        """Go on with a correction, or keep why there is none."""
        match found:
            case Correction():
                self.args[found.argument] = found.after
                self.corrections.append(found)
            case Problem():
                self.problems.append(found)
            case str():
                self.notes.append(found)


def _read(call: Call) -> _Draft:
    """The arguments with what needs no look at the workspace put right."""
    named, renamed, problems = named_right(call.spec, call.args)
    args, retyped = typed_right(call.spec, named)
    return _Draft(args, [*renamed, *retyped], problems)


def _lacking(spec: CommandSpec, args: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """What is required and given nowhere; None is a value only where any value is."""
    return tuple(
        parameter
        for parameter in spec.parameters
        if parameter.required
        and (parameter.name not in args or (args[parameter.name] is None and parameter.type != "any"))
    )


def _lacking_path(spec: CommandSpec, args: Mapping[str, Any]) -> Parameter | None:
    """The one missing argument that has to be the path of something; None where there are more, or none."""
    found = [one for one in _lacking(spec, args) if one.kind == "path" and one.exists]
    return found[0] if len(found) == 1 else None


def _found(extraction: Extraction | None) -> list[Correction]:
    """What a model found, cut to a line each: the values themselves are among the arguments."""
    if extraction is None:
        return []
    why = f"{extraction.model} found it in the goal"
    return [Correction(name, None, _brief(value), "model", why) for name, value in extraction.values.items()]


def _brief(value: Any) -> Any:
    return shown(value) if isinstance(value, str) and len(value) > SHOWN else value


def _from_goal(
    call: Call, args: Mapping[str, Any], enquiry: Enquiry, survey: Survey
) -> Correction | Problem | str | None:
    """The missing path, where the goal names one component and one thing bears its name."""
    lacking = _lacking_path(call.spec, args)
    if lacking is None or not enquiry.for_missing:
        return None
    entries = paths.fitting(survey.entries, lacking.exists)
    readings = tuple(dict.fromkeys(e for name in enquiry.names for e in components.bearers(name, entries)))
    named = " and ".join(shown(name) for name in enquiry.names)
    if readings and not survey.whole:
        return f"the goal names {named}; the workspace is too large to be sure what that is"
    if len(readings) == 1:
        why = f"the goal names {named}, and only this bears the name"
        after = paths.from_directory(call.cwd, readings[0])
        return Correction(lacking.name, None, after, "component", why)
    if readings:
        text = f"{call.spec.name}: {lacking.name} is missing; the goal's {named} can mean"
        one = paths.one_of(call.cwd, readings)
        return Problem(ErrorCode.BAD_ARGUMENTS, f"{text} {one}: say which.", lacking.name)
    return None


# ------------------------------------------------------------------ the records


def _components(call: Call, enquiry: Enquiry, survey: Survey) -> StageRecord:
    if not call.settings.enable_path_correction:
        return StageRecord(Stage.COMPONENTS, why=(OFF,), skipped=True)
    if not survey.missing and not enquiry.for_missing:
        return StageRecord(Stage.COMPONENTS)  # nothing was searched, as nothing had to be
    found = {
        name: [entry.path for entry in components.bearers(name, survey.entries)] for name in enquiry.names
    }
    unknown = tuple(f"{shown(name)}: nothing bears this name" for name, borne in found.items() if not borne)
    return StageRecord(Stage.COMPONENTS, {"names": list(enquiry.names)}, dict(found), unknown)


def _paths(call: Call, enquiry: Enquiry, survey: Survey) -> StageRecord:
    if not call.settings.enable_path_correction:
        return StageRecord(Stage.PATHS, why=(OFF,), skipped=True)
    given = {question.argument: question.path for question in enquiry.paths}
    went = {name: "not there" if name in survey.missing else "there" for name in given}
    return StageRecord(Stage.PATHS, dict(given), dict(went))


def _corrections(draft: _Draft) -> StageRecord:
    before = {one.argument: one.before for one in draft.corrections}
    after = {one.argument: one.after for one in draft.corrections}
    told = (*(one.words for one in draft.corrections), *(p.message for p in draft.problems), *draft.notes)
    return StageRecord(Stage.CORRECTIONS, before, after, told)


def _extraction(call: Call, extraction: Extraction | None) -> StageRecord:
    if not call.settings.use_llm_extraction:
        return StageRecord(Stage.EXTRACTION, why=(OFF,), skipped=True)
    if extraction is None:
        return StageRecord(Stage.EXTRACTION)
    told = tuple(f"repaired: {'; '.join(problems)}" for problems in extraction.repairs)
    wrong = (extraction.error,) if extraction.error else ()
    values = {name: shown(value) for name, value in extraction.values.items()}
    return StageRecord(Stage.EXTRACTION, {"model": extraction.model}, values, (*told, *wrong))


def _validated(
    call: Call, draft: _Draft, stages: list[StageRecord], survey: Survey, extraction: Extraction | None
) -> Outcome:
    spec, falls_back = call.spec, call.settings.fallback_to_defaults
    left_out = {
        parameter.name: parameter
        for parameter in spec.parameters
        if not parameter.required and parameter.default is not None and draft.args.get(parameter.name) is None
    }
    checked = check_arguments(spec, draft.args)
    told = {problem.argument for problem in draft.problems}
    problems = [*draft.problems, *(one for one in checked.problems if one.argument not in told)]
    if not falls_back:
        problems += [_no_default(spec, parameter) for parameter in left_out.values()]
        stages.append(StageRecord(Stage.DEFAULTS, why=(OFF,), skipped=True))
    else:
        stages.append(StageRecord(Stage.DEFAULTS, {}, {name: p.default for name, p in left_out.items()}))
    stages.append(StageRecord(Stage.VALIDATION, why=tuple(problem.message for problem in problems)))
    ambiguous = {problem.argument for problem in draft.problems}
    lacking = (*_lacking(spec, draft.args), *(() if falls_back else left_out.values()))
    return Outcome(
        replace(checked, args=draft.args if problems else checked.args, problems=tuple(problems)),
        tuple(draft.corrections),
        tuple(stages),
        tuple(parameter for parameter in lacking if parameter.name not in ambiguous),
        bool(draft.corrections or problems or survey.missing or extraction),
    )


def _no_default(spec: CommandSpec, parameter: Parameter) -> Problem:
    text = f"{spec.name} needs {parameter.name!r} ({expectation(parameter)}), as defaults are {OFF}."
    return Problem(ErrorCode.BAD_ARGUMENTS, text, parameter.name)
