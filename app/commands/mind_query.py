"""Questions to the mind of an agent with a program, and what looks wrong with its program."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from app.commands.command import Answer, CommandHost, Values, chosen_agent
from engine.agent.reasoner.actions import read_config
from engine.bdi.agent import BdiAgent, answer_texts
from engine.bdi.checking import unknown_actions
from engine.bdi.errors import EvaluationError, ProgramError
from engine.bdi.library.terms import STANDARD
from engine.bdi.parser import parse_literal, parse_program
from engine.bdi.printer import text_of
from engine.bdi.syntax import Belief, Program, Rule
from engine.core.offload import in_thread
from engine.core.state import AgentState


async def query_answer(host: CommandHost, values: Values) -> Answer:
    """The answers to a formula, from what the agent believes and its program's rules."""
    state = await host.engine.view(chosen_agent(host))
    if not state.reasons:
        return 2, {}, "only an agent with an AgentSpeak(L) program answers formulas; search finds texts"
    try:
        texts = await in_thread(lambda: answer_texts(_copy(state), values["formula"].removesuffix(".")))
    except (ProgramError, EvaluationError) as error:
        return 2, {}, str(error)
    return 0, {"answers": texts}, "\n".join(texts)


def _copy(state: AgentState) -> BdiAgent:
    """A mind with the agent's beliefs and rules, and without goals: asking it changes nothing."""
    config = read_config(state.config.meta)
    program = parse_program(config.program, config.source).knowledge
    places = {
        text_of(item.literal.with_annotations(())): place
        for place, item in enumerate(program)
        if isinstance(item, Belief)
    }
    rules = [(place, item) for place, item in enumerate(program) if isinstance(item, Rule)]
    knowledge: list[Belief | Rule] = []
    for held in state.held_beliefs.values():  # oldest first, which a program says last
        while rules and rules[-1][0] > places.get(held.text, -1):
            knowledge.append(rules.pop()[1])
        notes = [*held.annotations, *(f"source({source})" for source in held.sources)]
        with suppress(ProgramError):  # of a long one the state has only the beginning
            knowledge.append(Belief(parse_literal(f"{held.text}[{','.join(notes)}]")))
    knowledge += [rule for _, rule in reversed(rules)]
    return BdiAgent(state.agent_id, Program(tuple(reversed(knowledge))), semantics=config.rules)


def doubts(config: Mapping[str, Any]) -> str:
    """Internal actions of a configured program that are not there, behind what is said of its agent."""
    program = config.get("program")
    if not isinstance(program, str):
        return ""
    found = unknown_actions(parse_program(program, str(config.get("source", ""))), STANDARD)
    return "".join(f"; {finding}" for finding in found)
