"""What makes an agent one of another program: its thinker, its toolbox, and how it is configured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from engine.agent.acp.session import AcpSession
from engine.agent.acp.settings import read_acp
from engine.agent.acp.thinker import AcpThinker, AcpToolbox
from engine.agent.acp.updates import Earlier
from engine.agent.actions.pipeline import Toolbox
from engine.agent.actions.snapshots import Saver
from engine.agent.model_calls import ModelStreamRecorder
from engine.agent.settings import PARAMETERS_KEY, RECOVERY_KEY
from engine.core import events as ev
from engine.core.journal import JournalError
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.sandbox.policy import PolicyError
from engine.tools.shared_coder import SharedCoder

FAILURES = 10
"""Failures in a row after which the operator is asked: such programs try things, and see what happens."""


def defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with what differs from other agents: what the program asks for stays as it is."""
    off = {"enable_path_correction": False, "use_llm_extraction": False}
    usual: dict[str, Any] = {PARAMETERS_KEY: off, RECOVERY_KEY: {"max_consecutive_errors": FAILURES}}
    return {**usual, **config}


def problem(meta: Mapping[str, Any]) -> str:
    """What is wrong with a configuration, in one line; empty when it can be used."""
    try:
        read_acp(meta)
    except (ValueError, PolicyError) as error:
        return str(error)
    return ""


def agent(
    state: AgentState,
    coders: SharedCoder,
    store: JournalStore,
    stream: ModelStreamRecorder,
    inner: Toolbox,
    saver: Saver,
) -> tuple[AcpThinker, Toolbox]:
    """Thinker and toolbox of an agent."""
    name = state.agent_id

    async def earlier() -> Earlier:
        with suppress(JournalError):
            if found := await _session_of(store, name):
                return Earlier(found)
            if state.forked is not None:
                version = int(state.forked.parent.rpartition(":")[2])
                return Earlier(await _session_of(store, state.forked.agent, version), forked=True)
        return Earlier()

    def record(called: ev.ModelCalled) -> None:
        if stream.listener is not None:
            stream.listener.record_model_event(called)

    session = AcpSession(name, read_acp(state.config.meta), partial(coders.of, name), stream.piece)
    thinker = AcpThinker(session, state, saver, partial(coders.of, name), record, earlier, stream.flush)
    return thinker, AcpToolbox(thinker, inner)


async def _session_of(store: JournalStore, agent: str, until: int | None = None) -> str:
    """The session that an agent had last, by a version of its stream; empty for none."""
    for event in reversed(await store.last(50, agent, kind=ev.ActionFinished.kind)):
        session = json.loads(event.body).get("result", {}).get("session")
        if isinstance(session, str) and session and (until is None or event.version <= until):
            return session
    return ""
