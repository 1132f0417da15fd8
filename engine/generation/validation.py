"""Validation of a plan before anything of it runs."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from engine.domain.plan import Op, PlanStep
from engine.generation.notation import PLAN_LIMIT
from engine.parameters import unmendable
from engine.tools.registry import ToolRegistry


def problems_of(
    steps: Sequence[PlanStep], registry: ToolRegistry, *, settled_later: bool = False
) -> tuple[str, ...]:
    """Every reason why the steps cannot be a plan, in order of the steps; empty when they can.

    Checked are: at least one step, not too many, unique ids, known tools and sub-commands,
    arguments against the sub-command's schema, prerequisites that exist, and no cycle among them
    (seed brain and hands §3.1; spec mindX §2.4, §7 items 26-28).

    Args:
        steps: what is to be a plan.
        registry: what its steps can call.
        settled_later: arguments that are missing, or that can be put right, are left to the processing of
            each step's parameters; not those that an operator typed.
    """
    if not steps:
        return ("the plan has no steps",)
    if len(steps) > PLAN_LIMIT:
        return (f"the plan has {len(steps)} steps; at most {PLAN_LIMIT} are allowed",)
    found: list[str] = []
    ids = {step.id for step in steps}
    if len(ids) < len(steps):
        seen: set[str] = set()
        found += [
            f"step {n}: the id '{step.id}' is used twice"
            for n, step in enumerate(steps, 1)
            if step.id in seen or seen.add(step.id)  # type: ignore[func-returns-value]
        ]
    for number, step in enumerate(steps, 1):
        found += [f"step {number}: {problem}" for problem in step_problems(step, registry, settled_later)]
        found += [
            f"step {number}: it depends on '{other}', which is not in the plan"
            for other in step.depends_on
            if other not in ids
        ]
    try:
        TopologicalSorter({step.id: step.depends_on for step in steps}).prepare()
    except CycleError as error:
        found.append(f"the steps wait for each other in a circle: {' → '.join(error.args[1])}")
    return tuple(found)


def step_problems(step: PlanStep, registry: ToolRegistry, settled_later: bool = False) -> tuple[str, ...]:
    """Every reason why this step cannot run; see `problems_of`."""
    if step.op is Op.ACT:
        found = registry.validate(step.tool, step.command, step.args)
        if settled_later and step.provenance.by != "operator" and _is_command(step, registry):
            found = list(unmendable(registry.get(step.tool).commands[step.command], step.args))
        return tuple(problem.message for problem in found)
    if step.op is Op.ACHIEVE:
        return _needs(step, "goal")
    if step.op in (Op.ADD, Op.UPDATE):
        return (*_needs(step, "key"), *(() if "value" in step.args else ("value is missing",)))
    if step.op in (Op.REMOVE, Op.TEST):
        return _needs(step, "key")
    return ()


def _is_command(step: PlanStep, registry: ToolRegistry) -> bool:
    return step.tool in registry and step.command in registry.get(step.tool).commands


def _needs(step: PlanStep, name: str) -> tuple[str, ...]:
    value = step.args.get(name)
    if isinstance(value, str) and value.strip():
        return ()
    return (f"{step.op} needs '{name}', a non-empty string",)
