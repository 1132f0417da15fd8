"""Validation of a plan before anything of it runs."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from engine.domain.plan import Op, PlanStep
from engine.generation.notation import PLAN_LIMIT
from engine.tools.registry import ToolRegistry


def problems_of(steps: Sequence[PlanStep], registry: ToolRegistry) -> tuple[str, ...]:
    """Every reason why the steps cannot be a plan, in order of the steps; empty when they can.

    Checked are: at least one step, not too many, unique ids, known tools and sub-commands,
    arguments against the sub-command's schema, prerequisites that exist, and no cycle among them
    (seed brain and hands §3.1; spec mindX §2.4, §7 items 26-28).
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
        found += [f"step {number}: {problem}" for problem in step_problems(step, registry)]
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


def step_problems(step: PlanStep, registry: ToolRegistry) -> tuple[str, ...]:
    """Every reason why this step cannot run."""
    if step.op is Op.ACT:
        return tuple(problem.message for problem in registry.validate(step.tool, step.command, step.args))
    if step.op is Op.ACHIEVE:
        return _needs(step, "goal")
    if step.op in (Op.ADD, Op.UPDATE):
        return (*_needs(step, "key"), *(() if "value" in step.args else ("value is missing",)))
    if step.op in (Op.REMOVE, Op.TEST):
        return _needs(step, "key")
    return ()


def _needs(step: PlanStep, name: str) -> tuple[str, ...]:
    value = step.args.get(name)
    if isinstance(value, str) and value.strip():
        return ()
    return (f"{step.op} needs '{name}', a non-empty string",)
