"""The stages in order: components, paths, corrections, extraction, defaults, validation.

Arguments of the wrong name or type that can mean one thing only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from engine.core.actions import (
    SHOWN,
    Correction,
    ErrorCode,
    Extraction,
    Stage,
    StageRecord,
    Survey,
    value_text,
)
from engine.core.ports import CommandSpec, Parameter
from engine.core.text import StrictJsonError, read_json
from engine.model import LateModel
from engine.tools.parameters import paths
from engine.tools.parameters.paths import LookupRequest, folded
from engine.tools.registry import Checked, Problem, check_arguments, expectation, fits
from engine.value import dataclass, field, replace


class ProcessingSettings(BaseModel, metaclass=LateModel):
    """The switches of the seed's configuration; a stage that is off is on record as skipped."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    enable_path_correction: bool = True
    """Whether paths and components are looked up and put right."""
    use_llm_extraction: bool = True
    """Whether a model is asked for what is missing."""
    fallback_to_defaults: bool = True
    """Whether arguments that were left out get their defaults; otherwise they are missing."""


LIKE = 0.75
"""Likeness of two names, from 0 to 1, from which on one is the other misspelt."""
NAME_LIMIT = 60
"""Longest name of an argument that is compared."""
COMPARED = 20
"""Names that are compared; who gives more of them is past guessing."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:[eE][+-]?[0-9]{1,3})?")
_LARGEST = 2**53
"""Beyond it a floating-point number no longer says which integer is meant."""


def named_right(
    spec: CommandSpec, args: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Correction], list[Problem]]:
    """The arguments under the command's own names where a name is misspelt in one possible way.

    What is given under a name is never changed here; a name that can mean several is a problem.
    """
    known = {parameter.name for parameter in spec.parameters}
    free = [parameter.name for parameter in spec.parameters if parameter.name not in args]
    unknown = [name for name in args if name not in known]
    meant = {name: _meant(name, free) for name in unknown[:COMPARED]}
    taken = [names[0] for names in meant.values() if len(names) == 1]
    out: dict[str, Any] = {}
    corrections, problems = [], []
    for name, value in args.items():
        names = meant.get(name, [])
        if len(names) == 1 and taken.count(names[0]) == 1:
            out[names[0]] = value
            why = f"{spec.name} has no argument {value_text(name)}, and only this one is like it"
            corrections.append(Correction(names[0], name, names[0], "key", why))
            continue
        out[name] = value
        if len(names) > 1:
            readings = " or ".join(value_text(each) for each in names)
            text = f"{spec.name}: {value_text(name)} can mean {readings}: say which."
            problems.append(Problem(ErrorCode.BAD_ARGUMENTS, text, name))
    return out, corrections, problems


def _meant(name: str, free: list[str]) -> list[str]:
    """The arguments that a name can be a misspelling of, by the first rule that finds any."""
    if len(name) > NAME_LIMIT:
        return []
    key = folded(name)
    same = [other for other in free if folded(other) == key]
    like = [other for other in free if SequenceMatcher(None, key, folded(other)).ratio() >= LIKE]
    within = [other for other in free if folded(other) in key.split("_")]
    return same or like or within


def typed_right(spec: CommandSpec, args: Mapping[str, Any]) -> tuple[dict[str, Any], list[Correction]]:
    """The arguments with texts that spell a number, a truth value, a list or an object read as such."""
    out = dict(args)
    corrections = []
    for parameter in spec.parameters:
        value = args.get(parameter.name)
        if (read := _read_value(parameter, value)) is not None:
            out[parameter.name], rule = read
            why = f"{parameter.name} is {_KINDS[rule]}, and this spells one"
            corrections.append(Correction(parameter.name, value, out[parameter.name], rule, why))
    return out, corrections


_KINDS = {"number": "a number", "boolean": "true or false", "list": "a list", "object": "an object"}


def _read_value(parameter: Parameter, value: Any) -> tuple[Any, str] | None:
    """A value as its parameter wants it, and by which rule; None where it is right or may mean several."""
    if parameter.kind == "shell":
        words = _listed(value)
        return (words, "list") if words and all(isinstance(word, str) for word in words) else None
    if parameter.type in ("string", "any") or fits(parameter, value):
        return None
    match parameter.type:
        case "integer":
            return _integer(value)
        case "number" if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            number = float(value)
            if math.isinf(number):
                return None
            return (int(value) if _INTEGER.fullmatch(value.strip()) else number), "number"
        case "boolean" if isinstance(value, str) and value.strip().casefold() in ("true", "false"):
            return value.strip().casefold() == "true", "boolean"
        case "array":
            listed = _listed(value)
            return None if listed is None else (listed, "list")
        case "object" if isinstance(value, str) and isinstance(read := _json(value), dict):
            return read, "object"
    return None


def _integer(value: Any) -> tuple[Any, str] | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value), "number"
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return int(value), "number"
    return None


def _listed(value: Any) -> list[Any] | None:
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return None
    read = _json(value)
    return read if isinstance(read, list) else None


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except StrictJsonError:
        return None


OFF = "switched off in the agent's configuration"


@dataclass(frozen=True, slots=True)
class ParameterCall:
    """A call as a step has it, and what it is for."""

    spec: CommandSpec
    args: dict[str, Any]
    goal: str = ""
    """The text of the goal that the step serves."""
    cwd: str = "."
    settings: ProcessingSettings = field(default_factory=ProcessingSettings)


@dataclass(frozen=True, slots=True)
class ProcessedCall:
    """What the stages made of a call."""

    checked: Checked
    """With the arguments as they are now, also where there are problems."""
    corrections: tuple[Correction, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    missing: tuple[Parameter, ...] = ()
    """What a model may be asked for: required, and given nowhere."""
    telling: bool = False
    """Whether there is anything worth a record."""


def lookup_request(call: ParameterCall) -> LookupRequest:
    """What has to be looked up in the workspace before the call can be processed."""
    if not call.settings.enable_path_correction:
        return LookupRequest()
    args = _draft_of(call).args
    asked = paths.questions(call.spec, args, call.goal)
    lacking = _lacking_path(call.spec, args) is not None
    if not asked and not lacking:
        return LookupRequest()
    names = paths.references(call.goal)
    return LookupRequest(asked, names, for_missing=lacking and bool(names))


def process(call: ParameterCall, survey: Survey, extraction: Extraction | None = None) -> ProcessedCall:
    """The call after all stages; nothing is changed that can mean more than one thing.

    Args:
        call: as its step has it; what a model found is among its arguments by then.
        survey: the answer to `enquire(call)`.
        extraction: what a model was asked and found, when one was.
    """
    draft = _draft_of(call)
    draft.corrections[:0] = _found(extraction)
    enquiry = lookup_request(call)
    for question in enquiry.paths:
        if question.argument in survey.missing:
            draft.take(paths.correct_path(call.spec.name, question, call.cwd, survey))
    draft.take(_from_goal(call, draft.args, enquiry, survey))
    stages = [
        _components(call, enquiry, survey),
        _paths(call, enquiry, survey),
        _corrections(draft),
        _extraction(call, extraction),
    ]
    return _validated(call, draft, stages, survey, extraction)


def uncorrectable_problems(spec: CommandSpec, args: Mapping[str, Any]) -> tuple[Problem, ...]:
    """What is wrong with arguments and stays wrong whatever the workspace or the goal says.

    What is missing is left out: the goal may say it, or the operator may.
    """
    draft = _draft_of(ParameterCall(spec, dict(args)))
    lacking = {parameter.name for parameter in _lacking(spec, draft.args)}
    result = check_arguments(spec, draft.args).problems
    return tuple(problem for problem in result if problem.argument not in lacking)


# ------------------------------------------------------------------ the draft


@dataclass(slots=True)
class _Draft:
    """Arguments on their way through the stages."""

    args: dict[str, Any]
    corrections: list[Correction]
    problems: list[Problem]
    notes: list[str] = field(default_factory=list)
    """What could not be put right, in words."""

    def take(self, result: Correction | Problem | str | None) -> None:
        """Go on with a correction, or keep why there is none."""
        match result:
            case Correction():
                self.args[result.argument] = result.after
                self.corrections.append(result)
            case Problem():
                self.problems.append(result)
            case str():
                self.notes.append(result)


def _draft_of(call: ParameterCall) -> _Draft:
    """The arguments with what needs no look at the workspace put right."""
    named, renamed, problems = named_right(call.spec, call.args)
    args, retyped = typed_right(call.spec, named)
    return _Draft(args, [*renamed, *retyped], problems)


def _lacking(spec: CommandSpec, args: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """What is required and given nowhere; None is a value only where any value is."""
    given = {name for name, value in args.items() if value is not None}
    anything = {parameter.name for parameter in spec.parameters if parameter.type == "any"} & args.keys()
    required = (parameter for parameter in spec.parameters if parameter.required)
    return tuple(parameter for parameter in required if parameter.name not in given | anything)


def _lacking_path(spec: CommandSpec, args: Mapping[str, Any]) -> Parameter | None:
    """The one missing argument that has to be the path of something; None where there are more, or none."""
    result = [each for each in _lacking(spec, args) if each.kind == "path" and each.exists]
    return result[0] if len(result) == 1 else None


def _found(extraction: Extraction | None) -> list[Correction]:
    """What a model found, cut to a line each: the values themselves are among the arguments."""
    if extraction is None:
        return []
    why = f"{extraction.model} found it in the goal"
    return [Correction(name, None, _brief(value), "model", why) for name, value in extraction.values.items()]


def _brief(value: Any) -> Any:
    return value_text(value) if isinstance(value, str) and len(value) > SHOWN else value


def _from_goal(
    call: ParameterCall, args: Mapping[str, Any], enquiry: LookupRequest, survey: Survey
) -> Correction | Problem | str | None:
    """The missing path, where the goal names one component and one thing has its name."""
    lacking = _lacking_path(call.spec, args)
    if lacking is None or not enquiry.for_missing:
        return None
    entries = paths.entries_of_kind(survey.entries, lacking.exists)
    readings = tuple(dict.fromkeys(e for name in enquiry.names for e in paths.entries_named(name, entries)))
    named = " and ".join(value_text(name) for name in enquiry.names)
    if readings and not survey.whole:
        return f"the goal names {named}; the workspace is too large to be sure what that is"
    if len(readings) == 1:
        why = f"the goal names {named}, and only this bears the name"
        after = paths.from_directory(call.cwd, readings[0])
        return Correction(lacking.name, None, after, "component", why)
    if readings:
        text = f"{call.spec.name}: {lacking.name} is missing; the goal's {named} can mean"
        names = paths.one_of(call.cwd, readings)
        return Problem(ErrorCode.BAD_ARGUMENTS, f"{text} {names}: say which.", lacking.name)
    return None


# ------------------------------------------------------------------ the records


def _components(call: ParameterCall, enquiry: LookupRequest, survey: Survey) -> StageRecord:
    if not call.settings.enable_path_correction:
        return StageRecord(Stage.COMPONENTS, why=(OFF,), skipped=True)
    if not survey.missing and not enquiry.for_missing:
        return StageRecord(Stage.COMPONENTS)  # nothing was searched, as nothing had to be
    named = {name: paths.entries_named(name, survey.entries) for name in enquiry.names}
    result = {name: [entry.path for entry in entries] for name, entries in named.items()}
    nameless = (value_text(name) for name, entries in named.items() if not entries)
    unknown = tuple(f"{name}: nothing bears this name" for name in nameless)
    return StageRecord(Stage.COMPONENTS, {"names": list(enquiry.names)}, dict(result), unknown)


def _paths(call: ParameterCall, enquiry: LookupRequest, survey: Survey) -> StageRecord:
    if not call.settings.enable_path_correction:
        return StageRecord(Stage.PATHS, why=(OFF,), skipped=True)
    given = {question.argument: question.path for question in enquiry.paths}
    went = {name: "not there" if name in survey.missing else "there" for name in given}
    return StageRecord(Stage.PATHS, dict(given), dict(went))


def _corrections(draft: _Draft) -> StageRecord:
    before = {item.argument: item.before for item in draft.corrections}
    after = {item.argument: item.after for item in draft.corrections}
    words = [item.words for item in draft.corrections] + [problem.message for problem in draft.problems]
    return StageRecord(Stage.CORRECTIONS, before, after, (*words, *draft.notes))


def _extraction(call: ParameterCall, extraction: Extraction | None) -> StageRecord:
    if not call.settings.use_llm_extraction:
        return StageRecord(Stage.EXTRACTION, why=(OFF,), skipped=True)
    if extraction is None:
        return StageRecord(Stage.EXTRACTION)
    words = tuple(f"repaired: {'; '.join(problems)}" for problems in extraction.repairs)
    wrong = (extraction.error,) if extraction.error else ()
    values = {name: value_text(value) for name, value in extraction.values.items()}
    return StageRecord(Stage.EXTRACTION, {"model": extraction.model}, values, (*words, *wrong))


def _validated(
    call: ParameterCall,
    draft: _Draft,
    stages: list[StageRecord],
    survey: Survey,
    extraction: Extraction | None,
) -> ProcessedCall:
    spec, falls_back = call.spec, call.settings.fallback_to_defaults
    left_out = {
        parameter.name: parameter
        for parameter in spec.parameters
        if not parameter.required and parameter.default is not None and draft.args.get(parameter.name) is None
    }
    checked = check_arguments(spec, draft.args)
    ambiguous = {problem.argument for problem in draft.problems}
    problems = [*draft.problems, *(item for item in checked.problems if item.argument not in ambiguous)]
    if not falls_back:
        problems += [_no_default(spec, parameter) for parameter in left_out.values()]
        stages.append(StageRecord(Stage.DEFAULTS, why=(OFF,), skipped=True))
    else:
        stages.append(StageRecord(Stage.DEFAULTS, {}, {name: p.default for name, p in left_out.items()}))
    stages.append(StageRecord(Stage.VALIDATION, why=tuple(problem.message for problem in problems)))
    lacking = (*_lacking(spec, draft.args), *(() if falls_back else left_out.values()))
    return ProcessedCall(
        replace(checked, args=draft.args if problems else checked.args, problems=tuple(problems)),
        tuple(draft.corrections),
        tuple(stages),
        tuple(parameter for parameter in lacking if parameter.name not in ambiguous),
        bool(draft.corrections or problems or survey.missing or extraction),
    )


def _no_default(spec: CommandSpec, parameter: Parameter) -> Problem:
    text = f"{spec.name} needs {parameter.name!r} ({expectation(parameter)}), as defaults are {OFF}."
    return Problem(ErrorCode.BAD_ARGUMENTS, text, parameter.name)


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be taken out of a goal."""

    goal: str
    tool: str
    spec: CommandSpec
    missing: tuple[Parameter, ...]
    given: dict[str, Any]
    """The arguments that are there already."""
    cwd: str = "."


class ParameterExtractor(Protocol):
    """Who takes missing parameters out of a goal: a model, or a recording of one."""

    @property
    def model(self) -> str:
        """The model's name."""

    async def extract(self, question: Question) -> Extraction:
        """What was found; nothing that a model says or fails at raises.

        Raises:
            ModelError: of kind BUDGET; the call was not made.
        """
