"""What a role is here: a model's first-person prompt for it, and what can be said without a model.

Source: mindX spec §1.2, `introspect`. Without a model nothing is made up: the answer says that there is none
and gives what holds (tools, policies, the words that prompts have in force).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.domain.text import clean, clean_line
from engine.library.prompt_parts import DIRECTORY, PARTS, Parts, read_parts
from engine.mastermind.creating import Helm
from engine.mastermind.registry import tool_registry
from engine.models.choice import NO_MODEL
from engine.models.port import Recorder, unrecorded

ROLE_LIMIT = 500
ANSWER_TOKENS = 500
"""As much as the original asked for (mindX spec §1.2)."""
TEMPERATURE = 0.5


class IntrospectionError(ValueError):
    """There is nothing to say, or it cannot be kept; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Introspection:
    """What was found out about a role."""

    role: str
    agent: str
    """The agent that the role names; empty for none."""
    prompt: str
    """A system prompt in the first person; empty without a model."""
    model: str
    """Who wrote it; empty for nobody."""
    note: str
    """Why there is no prompt; empty where there is one."""
    tools: tuple[str, ...]
    """Commands that an agent in this role may call."""
    policies: Mapping[str, str]
    """What its programs may do, and what is asked, in words by subject."""
    parts: Mapping[str, str]
    """The parts of the prompt that are in force for it, by name."""

    def as_json(self) -> dict[str, Any]:
        """The answer as plain values."""
        return {
            "role": self.role,
            "agent": self.agent,
            "prompt": self.prompt,
            "model": self.model,
            "note": self.note,
            "tools": list(self.tools),
            "policies": dict(self.policies),
            "parts": dict(self.parts),
        }

    @property
    def text(self) -> str:
        """The answer for a person."""
        said = [self.prompt, ""] if self.prompt else [self.note, ""]
        said.append(f"tools: {', '.join(self.tools)}")
        said += [f"{subject}: {words}" for subject, words in self.policies.items()]
        said += [f"prompt part {name}: {len(words):,} characters" for name, words in self.parts.items()]
        return "\n".join(said)


_SYSTEM = """You write system prompts. You are given a role, and what an agent in that role can really do.
Write the prompt in the first person, beginning with "I am", in plain words, at most 250 words: who I am, what
I answer for, how I work, when I ask the operator. Claim no tool, right or knowledge that is not listed.
Answer with the prompt alone."""


async def introspect(helm: Helm, role: str, *, record: Recorder = unrecorded) -> Introspection:
    """What a role is; an agent's id stands for the role that it has.

    Args:
        helm: the engine, with its model or without.
        role: the role in words, or the id of an agent.
        record: told of every call of the model.

    Raises:
        IntrospectionError: no role is named.
        ModelError: the model could not be asked, or gave nothing that can be used.
    """
    role = clean_line(role, limit=ROLE_LIMIT)
    if not role:
        raise IntrospectionError("a role is missing: introspect reviewer, or introspect AGENT")
    agent = role if role in helm.agents else ""
    found = await _computed(helm, role, agent)
    if helm.model is None:
        return found
    from engine.domain.fence import RULE
    from engine.models import ask, fence

    facts = "\n".join([f"tools: {', '.join(found.tools)}", *(f"{k}: {v}" for k, v in found.policies.items())])
    question = f"{fence('the role', role)}\n{fence('what an agent can do here', facts)}\nWrite the prompt."
    answer = await ask(
        helm.model,
        helm.model_name,
        f"{_SYSTEM}\n\n{RULE}",
        question,
        max_tokens=ANSWER_TOKENS,
        temperature=TEMPERATURE,
        record=record,
    )
    prompt = clean(answer.text).strip()
    if not prompt:
        raise IntrospectionError(f"{helm.model_name} said nothing that can be a prompt; try again")
    return Introspection(role, agent, prompt, helm.model_name, "", found.tools, found.policies, found.parts)


async def _computed(helm: Helm, role: str, agent: str) -> Introspection:
    """What needs no model."""
    tools = tuple(
        f"{row.tool} {row.command}" for row in tool_registry(helm.registry) if "agents" in row.callers
    )
    policies = dict(helm.sandbox(agent).policy.facts())
    parts: dict[str, str] = {}
    if agent:
        state = await helm.view(agent)
        kept = state.approvals.policies
        asked = [f"{source}: {len(one.rules)} rules, else {one.default}" for source, one in kept.items()]
        policies["asks"] = "; ".join(asked) or "nothing"
        policies["thinks"] = f"by {state.config.thinker}" + (
            ", one action at a time" if state.config.decides else ""
        )
        if state.config.replans:
            own = await asyncio.to_thread(read_parts, helm.workspace)
            parts = _parts_in_force(helm, own, decides=state.config.decides)
    note = f"no prompt was written: {NO_MODEL}" if helm.model is None else ""
    return Introspection(role, agent, "", "", note, tools, policies, parts)


def _parts_in_force(helm: Helm, parts: Parts, *, decides: bool) -> dict[str, str]:
    """The stable parts of the prompt by which a model thinks for an agent."""
    from engine.thinkers.claude_prompt import decider_blocks, system_blocks

    blocks = decider_blocks(parts) if decides else system_blocks(helm.registry, parts)
    return {block.name: block.text for block in blocks}


def keep(workspace: Path, found: Introspection) -> Path:
    """Keep a prompt as `prompts/ROLE.md`, where it can be improved as any other component.

    Raises:
        IntrospectionError: there is none, another one has the name, or it cannot be written.
    """
    if not found.prompt:
        raise IntrospectionError(f"there is no prompt to keep: {found.note}")
    name = re.sub(r"[^a-z0-9]+", "-", found.role.casefold()).strip("-")[:60] or "role"
    if name in PARTS:
        raise IntrospectionError(
            f"prompts/{name}.md is what every model is guided by: give the role another name"
        )
    path = workspace / DIRECTORY / f"{name}.md"
    content = found.prompt.rstrip() + "\n"
    fresh = path.with_name(f".{path.name}.new")
    try:
        if path.exists():
            if path.read_text(encoding="utf-8") == content:
                return path
            raise IntrospectionError(f"{path} is there with other words; move it away first")
        path.parent.mkdir(exist_ok=True)
        fresh.write_text(content, encoding="utf-8")
        os.link(fresh, path)
    except OSError as error:
        raise IntrospectionError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            fresh.unlink()
    return path
