"""The fold of the crew's stream."""

from __future__ import annotations

import json
from typing import Any

from engine.core import crew as ce
from engine.core import crew_commands as cc
from engine.core.journal import CREW
from engine.crew.event_stream import EventStream
from tests.engine.crew.flight import CLEAR, Flight, Job, group_results


async def test_the_stored_stream_gives_the_same_state_and_unknown_fields_a_warning(flight: Flight) -> None:
    await flight.register("a", "b")

    async def a(job: Job) -> Any:
        await job.desk.keep(job.run, "pipeline.phase", {"done": "one"}, "one is done")
        return job.done("text", key_findings=("found",))

    flight.worker.scripts["a"] = a
    group = (await flight.do(cc.Sequence(to=("a", "b"), task="all", clarity=CLEAR)))["group"]
    await group_results(flight.crew, group)
    await flight.do(cc.EnableAgent(who="b", enabled=False))
    stream = flight.crew.stream
    stream.append(ce.BuildStaged(build="x", phase="analysis", state="passed", agent="a"))
    stream.append(ce.ServerTold(server="search", state="ok", tools=3))
    await stream.commit()
    events = await flight.store.read(CREW)
    again = EventStream.fold(events)
    assert again == flight.crew.state
    assert again.builds["x"].phase == "analysis"
    newer = [
        one._replace(body=json.dumps({**said, "context": {**said["context"], "mood": "good"}}))
        if "context" in (said := json.loads(one.body))
        else one
        for one in events
    ]
    assert EventStream.fold(newer).handoffs == again.handoffs
