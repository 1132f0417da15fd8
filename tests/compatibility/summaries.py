"""What must be the same in every later version: states and settings as plain values, without sentences.

The maker of the fixtures writes these down and the test compares them, so this module is the one place to
change when an attribute has another name. Texts that the program itself words (summaries, reasons, messages)
are left out: they may get better. What an operator or a model said, codes, numbers and arguments stay.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value, sort_keys=True, default=str))


def digest(value: Any) -> str:
    """A hash of a summary."""
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()


def agent_summary(state: Any) -> dict[str, Any]:
    """What an agent is at an event."""
    approvals = state.approvals
    forked = state.forked
    return plain(
        {
            "id": state.agent_id,
            "type": state.agent_type,
            "version": state.version,
            "head": state.hash,
            "session": state.session,
            "tick": state.tick,
            "deleted": state.deleted,
            "forked": forked.parent if forked is not None else None,
            "run": state.run,
            "mode": state.mode,
            "goals": [
                [g.id, g.text, g.status, g.priority, g.parent, list(g.criteria)] for g in state.goals.values()
            ],
            "current_goal": state.current_goal,
            "plans": {
                goal: [plan.id, plan.revision, [_step(step) for step in plan.steps]]
                for goal, plan in state.plans.items()
            },
            "beliefs": {key: [b.value, b.confidence, b.source] for key, b in state.beliefs.items()},
            "place": [state.sandbox.cwd, state.sandbox.autonomous],
            "intervention": state.intervention.step if state.intervention is not None else None,
            "waits_for": approvals.question.action if approvals.question is not None else None,
            "grants": [
                [grant.scope, grant.rule.command, list(grant.rule.paths)] for grant in approvals.grants
            ],
            "denials": [denial.goal for denial in approvals.denied],
            "accepted": sorted(approvals.envelopes),
            "failures": [
                [f.kind, f.goal, f.step, f.action, f.strategy, f.attempt, f.resolved] for f in state.failures
            ],
            "step_breakpoints": sorted(state.breakpoints),
            "breakpoints": {
                point.id: [point.spec.kind, point.spec.subject, point.enabled, point.stopped]
                for point in state.points.values()
            },
            "disputed": dict(state.disputed),
            "written": dict(state.written),
            "actions": [state.actions, state.failed_actions, state.operator_actions],
            "model": [state.model, state.model_calls, state.tokens, state.output_tokens, state.cost_usd],
            "worked_us": state.worked_us,
            "budget": _limits(state.budget),
            "goal_budgets": {goal: _limits(limits) for goal, limits in state.goal_budgets.items()},
            "spent": {goal: [s.calls, s.tokens, s.usd, s.actions, s.us] for goal, s in state.spent.items()},
            "background": [[ended.job.id, ended.job.task, ended.outcome] for ended in state.meta.ended],
            "intentions": sorted(state.intentions),
            "reasoner_beliefs": list(state.held_beliefs),
            "reasoner_breakpoints": [[b.on, b.pattern, b.hits] for b in state.mind_breakpoints.values()],
            "generations": [
                [g.id, g.goal, g.stage, g.decision, len(g.plans)] for g in state.generations.values()
            ],
            "generated": [[g.label, g.goal, g.text] for g in state.generated],
            "world": state.world,
        }
    )


def _step(step: Any) -> list[Any]:
    return [
        step.id,
        step.op,
        step.status,
        step.tool,
        step.command,
        step.args,
        step.attempts,
        step.provenance.by,
        step.provenance.recipe,
    ]


def _limits(limits: Any) -> list[Any] | None:
    if limits is None:
        return None
    return [limits.usd, limits.tokens, limits.calls, limits.actions, limits.seconds]


def crew_summary(state: Any) -> dict[str, Any]:
    """What the agents that hand work to each other know."""
    return plain(
        {
            "agents": {
                name: [entry.enabled, entry.runs, entry.successes, entry.last]
                for name, entry in state.agents.items()
            },
            "handoffs": {
                handoff.id: {
                    "agent": handoff.agent,
                    "task": handoff.context.task_description,
                    "parent": handoff.context.parent_id,
                    "state": handoff.state,
                    "moves": [[move.source, move.target, move.actor] for move in handoff.moves],
                    "priority": handoff.priority,
                    "group": handoff.group,
                    "run": handoff.run,
                    "stage": handoff.stage,
                    "success": handoff.result.success if handoff.result is not None else None,
                    "output": handoff.result.output if handoff.result is not None else None,
                    "data": handoff.result.data if handoff.result is not None else None,
                    "code": handoff.result.error_code if handoff.result is not None else None,
                }
                for handoff in state.handoffs.values()
            },
            "groups": {
                group.id: [group.mode, list(group.agents), list(group.handoffs), group.ok, group.code]
                for group in state.groups.values()
            },
            "floor": [[holder.agent, holder.handoff] for holder in state.floor],
            "requests": {
                request.id: [request.handoff_id, request.reason_code, request.state]
                for request in state.requests.values()
            },
            "clarity": state.clarity,
            "ideas": {idea.id: [idea.text, idea.agent, idea.state, idea.to] for idea in state.ideas.values()},
        }
    )


def mastermind_summary(state: Any) -> dict[str, Any]:
    """What the program knows of its own improvement."""
    return plain(
        {
            "jobs": {job.id: [job.verb, job.argument, job.status] for job in state.jobs.values()},
            "items": {
                item.id: [item.uid, item.target, item.concern, item.status, item.priority, item.campaign]
                for item in state.items.values()
            },
            "campaigns": {campaign.id: _campaign(campaign) for campaign in state.campaigns.values()},
            "identities": {
                identity.address: [identity.entity, bool(identity.deprecated)]
                for identity in state.identities.values()
            },
        }
    )


def _campaign(campaign: Any) -> dict[str, Any]:
    verdicts = [candidate.verdict for candidate in campaign.candidates]
    return {
        "directive": campaign.directive,
        "component": campaign.component.id if campaign.component is not None else None,
        "status": campaign.status,
        "seed": campaign.seed,
        "chosen": campaign.chosen,
        "item": campaign.item,
        "candidates": [[candidate.id, dict(candidate.files)] for candidate in campaign.candidates],
        "rulings": [verdict.ruling if verdict is not None else None for verdict in verdicts],
    }


def settings_summary(settings: Any) -> dict[str, Any]:
    """What the operator chose, with the preset and the rules of the approvals spelt out."""
    model = settings.model
    mastermind = settings.mastermind
    return plain(
        {
            "theme": settings.theme,
            "keys": settings.keys,
            "notify": settings.notify,
            "network": settings.network,
            "accept_paths": settings.accept_paths,
            "snapshots": settings.snapshots,
            "approvals": {
                "default": settings.approvals.default,
                "rules": [
                    {
                        "answer": rule.answer,
                        "tool": rule.tool,
                        "command": rule.command,
                        "args": rule.args,
                        "paths": list(rule.paths),
                        "reversible": rule.reversible,
                        "changes": rule.changes,
                        "network": rule.network,
                        "cost_over": rule.cost_over,
                        # The rule of a preset names nothing, and its reason is worded by the program.
                        "reason": rule.reason if rule.tool or rule.command or rule.paths else None,
                    }
                    for rule in settings.approvals.rules
                ],
            },
            "model": None
            if model is None
            else {"name": model.name, "repairs": model.repairs, "budget": _limits(model.budget)},
            "budget": _limits(settings.budget),
            "agent_budget": _limits(settings.agent_budget),
            "mastermind": {
                "cooldown_s": mastermind.cooldown_s,
                "interval_s": mastermind.interval_s,
                "watch_s": mastermind.watch_s,
                "busy_percent": mastermind.busy_percent,
                "approve_critical": mastermind.approve_critical,
                "critical": list(mastermind.critical),
                "candidates": mastermind.budget.candidates,
                "seconds": mastermind.budget.seconds,
                "usd": mastermind.budget.usd,
            },
            "crew": {"model_calls": settings.crew.model_calls, "built_ins": settings.crew.built_ins},
            "problems": list(settings.problems),
        }
    )
