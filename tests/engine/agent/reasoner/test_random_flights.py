"""Random programs and random operators at random moments: the journal holds together whatever they do.

`PILOTHOUSE_FLIGHTS=500` before the call tries as many flights as that instead of a few.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from engine.core import commands as cmd
from tests.engine.agent.reasoner.conftest import checked
from tests.engine.agent.reasoner.reasoner_flight import ReasonerFlight, kept_and_rest_is_the_whole

GOALS = 4
values = st.integers(0, 3)


def steps(level: int) -> st.SearchStrategy[str]:
    """Body steps of a plan for a goal; it pursues only later ones, so that most programs end."""
    below = st.integers(level + 1, GOALS)
    simple = st.one_of(
        below.map(lambda n: f"!g{n}"),
        below.map(lambda n: f"!!g{n}"),
        values.map(lambda n: f"+b({n})"),
        values.map(lambda n: f"-b({n})"),
        values.map(lambda n: f"-+c({n})"),
        st.integers(1, 5).map(lambda n: f".wait({n})"),
        values.map(lambda n: f".wait(b({n}), 3)"),
        values.map(lambda n: f"mkdir(d{n})"),
        values.map(lambda n: f'write("f{n}", x)'),
        values.map(lambda n: f'read("f{n}", T); .print(T)'),
        values.map(lambda n: f".print({n})"),
        values.map(lambda n: f"?b({n})"),
        st.sampled_from([".fail", ".random(R); +drawn(R)", "?c(Z); .print(Z)", ".generate_plan(made(1))"]),
        below.map(lambda n: f".drop_desire(g{n})"),
    )
    block = st.one_of(
        simple.map(lambda one: f"for (b(X)) {{ {one}; .print(X) }}"),
        simple.map(lambda one: f"if (b(1)) {{ {one} }} else {{ .print(no) }}"),
    )
    return simple | block


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = ["b(0). b(1).", "+!loop(N) : N < 400 <- .wait(1); !loop(N + 1)."]
    lines += draw(st.sampled_from([["!loop(0)."], []]))
    lines += [f"!g{draw(st.integers(0, GOALS - 1))}." for _ in range(draw(st.integers(1, 3)))]
    for level in range(GOALS + 1):
        for _ in range(draw(st.integers(1, 2))):
            context = draw(st.sampled_from(["", " : b(1)", " : not c(2)"]))
            atomic = draw(st.sampled_from(["", "", "", "@[atomic] "]))
            body = draw(st.lists(steps(level), min_size=0, max_size=4)) if level < GOALS else []
            lines.append(f"{atomic}+!g{level}{context} <- {'; '.join([*body, 'true'])}.")
    if draw(st.booleans()):
        lines.append(f"-!g{draw(st.integers(0, GOALS))}[error(E)] <- .print(E).")
    if draw(st.booleans()):
        lines.append("+b(X) <- .print(X); +seen(X). -b(X) <- -seen(X).")
    return "\n".join(lines)


pauses = st.integers(0, 60)
"""Turns of the event loop between two commands."""
commands = st.one_of(
    *[st.just((kind, {})) for kind in (cmd.Run, cmd.Run, cmd.Run, cmd.Pause, cmd.Stop, cmd.Thaw)],
    st.sampled_from(["after", "hold", "cut", "cancel", "freeze"]).map(lambda g: (cmd.Stop, {"grade": g})),
    st.sampled_from(["step", "step", "over", "out"]).map(lambda scope: (cmd.Step, {"scope": scope})),
    st.tuples(values, st.booleans()).map(
        lambda told: (cmd.TellBelief, {"literal": f"b({told[0]})", "removed": told[1]})
    ),
    values.map(lambda n: (cmd.Believe, {"key": "b", "value": n})),
    st.just((cmd.Forget, {"key": "b"})),
    values.map(lambda n: (cmd.AdoptGoal, {"text": f"g{n}"})),
    st.integers(1, 4).map(lambda n: (cmd.DropGoal, {"goal": f"g{n}"})),
    st.tuples(st.integers(1, 9), st.sampled_from(["suspend", "resume", "drop", "fail"])).map(
        lambda one: (cmd.SteerIntention, {"intention": one[0], "how": one[1]})
    ),
    st.booleans().map(lambda on: (cmd.SetTracing, {"on": on})),
    st.just((cmd.CallTool, {"command": "write", "args": {"path": "f1", "content": "mine"}})),
    st.integers(1, 30).map(lambda n: (cmd.Run, {"max_loops": n})),
    st.just((None, {})),
)
ANSWERS = ("of no use", "EVENT: achieve made(X)\nOPERATIONS:\n- add made_up(X)\n- execute mkdir(X)")


async def fly(
    program: str, orders: list[tuple[int, tuple[type[cmd.Command] | None, dict[str, object]]]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        flight = ReasonerFlight(Path(place))
        await flight.open()
        try:
            receipt = await flight.create(program, generation={"answers": ANSWERS, "attempts": 2})
            assert receipt.ok, receipt.message
            for turns, (kind, fields) in orders:
                for _ in range(turns):
                    await asyncio.sleep(0.0002)
                if kind is None:
                    await flight.reopen()
                else:
                    await flight.submit(kind, **fields)
            await flight.submit(cmd.Pause)
            assert not flight.engine.health.agents
            events = await flight.events()
            kept_and_rest_is_the_whole(flight, events, every=max(1, len(events) // 4))
            await checked(flight)
        finally:
            await flight.engine.close()


@settings(
    max_examples=int(os.environ.get("PILOTHOUSE_FLIGHTS", "8")),
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    derandomize="PILOTHOUSE_FLIGHTS" not in os.environ,
    database=None,
)
@given(programs(), st.lists(st.tuples(pauses, commands), min_size=3, max_size=25))
def test_whatever_happens_the_journal_holds_together(
    program: str, orders: list[tuple[int, tuple[type[cmd.Command] | None, dict[str, object]]]]
) -> None:
    asyncio.run(fly(program, orders))
