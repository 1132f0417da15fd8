"""The JSON notation of plans, read strictly, and the validation of a plan before it runs.

A plan is a list of actions `{"type": "EXECUTE_TOOL", "params": {"tool_id", "command", "args"}}` with
optional `id`, `description` and `depends_on`; `{"type": "THINK", "description": …}` is a step that can only
be decided on once those before it are done. The seed's flat form, with the arguments beside `command`, is
read too; its own `run` steps repeat the key `command`, which is refused like any duplicate key.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from engine.core.plan import Op, PlanStep, Provenance
from engine.core.reasons import Reason, free_text
from engine.core.text import DuplicateKeyError, StrictJsonError, read_json
from engine.tools.parameters.processing import uncorrectable_problems
from engine.tools.registry import ToolRegistry

PLAN_LIMIT = 500
"""Steps that a plan may have."""
_STEP_KEYS = {"type", "params", "id", "description", "depends_on"}


class PlanSyntaxError(ValueError):
    """The text is no plan; the message says where and why."""


def parse_plan(text: str, *, by: str = "operator") -> tuple[PlanStep, ...]:
    """The steps of a plan in JSON.

    Args:
        text: the plan; nothing but one JSON list.
        by: who proposes it, for the provenance of the steps.

    Raises:
        PlanSyntaxError: it is not valid JSON, repeats a key, or a step is malformed.
    """
    try:
        value = read_json(text)
    except DuplicateKeyError as error:
        raise PlanSyntaxError(
            f'{error}; a program would keep only the last: put the tool\'s arguments under "args"'
        ) from None
    except StrictJsonError as error:
        raise PlanSyntaxError(str(error)) from None
    return plan_from_json(value, by=by)


def plan_from_json(value: Any, *, by: str = "operator") -> tuple[PlanStep, ...]:
    """The steps of a plan whose JSON was read already.

    Args:
        value: what was read; a plan is a list of actions.
        by: who proposes it, for the provenance of the steps.

    Raises:
        PlanSyntaxError: it is no list of actions, too long or empty, or a step is malformed.
    """
    if not isinstance(value, list):
        raise PlanSyntaxError(f"a plan is a JSON list of actions, this is {_name(value)}")
    if not value:
        raise PlanSyntaxError("the plan is empty")
    if len(value) > PLAN_LIMIT:
        raise PlanSyntaxError(f"{len(value)} steps; a plan has at most {PLAN_LIMIT}")
    return tuple(_step(item, number, by) for number, item in enumerate(value, 1))


def _name(value: Any) -> str:
    names = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null", list: "a list"}
    return names.get(type(value), "a number")


def _step(item: Any, number: int, by: str) -> PlanStep:
    where = f"step {number}"
    if not isinstance(item, dict):
        raise PlanSyntaxError(f"{where}: an action is an object, this is {_name(item)}")
    unknown = sorted(set(item) - _STEP_KEYS)
    if unknown:
        raise PlanSyntaxError(
            f"{where}: unknown key '{unknown[0]}'; known are {', '.join(sorted(_STEP_KEYS))}"
        )
    kind, params, call = item.get("type"), item.get("params"), dict[str, Any]()
    if kind == "THINK" and "params" in item:
        raise PlanSyntaxError(f"{where}: a step to THINK about has a description and no params")
    if kind not in ("THINK", "EXECUTE_TOOL"):
        raise PlanSyntaxError(f"{where}: type must be EXECUTE_TOOL or THINK, not {kind!r}")
    if kind == "EXECUTE_TOOL":
        if not isinstance(params, dict):
            raise PlanSyntaxError(f"{where}: params must be an object with tool_id and command")
        call = {"tool": _text(params, "tool_id", where), "command": _text(params, "command", where)}
        call["args"] = _args(params, where)
    return PlanStep(
        id=_text(item, "id", where, default=str(number)),
        description=_text(item, "description", where, default=call.get("command")),
        op=Op.ACT if call else Op.THINK,
        **call,
        depends_on=_names(item.get("depends_on", []), where),
        provenance=Provenance(by=by),
    )


def _text(holder: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = holder.get(key, default)
    if not isinstance(value, str) or not value:
        raise PlanSyntaxError(f"{where}: {key} must be a non-empty string")
    return value


def _args(params: dict[str, Any], where: str) -> dict[str, Any]:
    flat = {key: value for key, value in params.items() if key not in ("tool_id", "command", "args")}
    args = params.get("args", {})
    if not isinstance(args, dict):
        raise PlanSyntaxError(f"{where}: args must be an object, this is {_name(args)}")
    both = sorted(set(flat) & set(args))
    if both:
        raise PlanSyntaxError(f"{where}: '{both[0]}' is given both beside command and under args")
    return {**flat, **args}


def _names(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PlanSyntaxError(f"{where}: depends_on must be a list of step ids")
    return tuple(value)


def problems_of(
    steps: Sequence[PlanStep], registry: ToolRegistry, *, settled_later: bool = False
) -> tuple[Reason, ...]:
    """Every reason why the steps cannot be a plan, in order of the steps; empty when they can.

    Checked are: at least one step, not too many, unique ids, known tools and sub-commands,
    arguments against the sub-command's schema, prerequisites that exist, and no cycle among them.

    Args:
        steps: what is to be a plan.
        registry: what its steps can call.
        settled_later: arguments that are missing, or that can be put right, are left to the processing of
            each step's parameters; not those that an operator typed.
    """
    if not steps:
        return (Reason("plan.no-steps"),)
    if len(steps) > PLAN_LIMIT:
        return (Reason("plan.too-long", steps=len(steps), limit=PLAN_LIMIT),)
    problems: list[Reason] = []
    ids = [step.id for step in steps]
    for number, name in enumerate(ids, 1):
        if name in ids[: number - 1]:
            problems.append(Reason("plan.in-step", number=number, problem=Reason("plan.same-id", id=name)))
    for number, step in enumerate(steps, 1):
        unmet = (Reason("plan.no-such-step", step=other) for other in step.depends_on if other not in ids)
        problems += [
            Reason("plan.in-step", number=number, problem=problem)
            for problem in (*step_problems(step, registry, settled_later), *unmet)
        ]
    try:
        TopologicalSorter({step.id: step.depends_on for step in steps}).prepare()
    except CycleError as error:
        problems.append(Reason("plan.circle", steps=tuple(error.args[1])))
    return tuple(problems)


def step_problems(step: PlanStep, registry: ToolRegistry, settled_later: bool = False) -> tuple[Reason, ...]:
    """Every reason why this step cannot run; see `problems_of`."""
    if step.op is Op.ACT:
        problems = registry.validate(step.tool, step.command, step.args)
        if settled_later and step.provenance.by != "operator" and _is_command(step, registry):
            problems = list(uncorrectable_problems(registry.get(step.tool).commands[step.command], step.args))
        return tuple(free_text(problem.message) for problem in problems)
    if step.op is Op.ACHIEVE:
        return _needs(step, "goal")
    if step.op in (Op.ADD, Op.UPDATE):
        return (*_needs(step, "key"), *(() if "value" in step.args else (Reason("plan.no-value"),)))
    if step.op in (Op.REMOVE, Op.TEST):
        return _needs(step, "key")
    return ()


def _is_command(step: PlanStep, registry: ToolRegistry) -> bool:
    return step.tool in registry and step.command in registry.get(step.tool).commands


def _needs(step: PlanStep, name: str) -> tuple[Reason, ...]:
    value = step.args.get(name)
    if isinstance(value, str) and value.strip():
        return ()
    return (Reason("plan.no-text", op=step.op.value, name=name),)
