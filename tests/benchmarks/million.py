"""Whether a million agents would do as the guide's page on limits reckons: a simulation.

Agents begin work at random, each for a minute on average, and cause events while they work. Each lives on
one of a hundred shards, and 20 shards write to one PostgreSQL. Both take so many events each second as was
measured or is assumed there; what comes on top waits. A shard is down for a while, and another one has its
agents, too. Run it with `python -m tests.benchmarks.million`.
"""

from __future__ import annotations

import heapq
import json
import math
import random

AGENTS, SHARDS, SERVERS = 1_000_000, 100, 5
AT_WORK, WORK_S, EVENTS_S = 0.01, 60.0, 6.0
"""Share of agents at work, how long each is, and the events that it causes each second."""
SHARD_S, SERVER_S, EVENT_BYTES = 1_200.0, 15_000.0, 600
"""Events that a shard and a server take each second, and the size of an event."""
SECONDS, DOWN_FROM, DOWN_S = 900, 300, 60
DOWN, STANDS_IN = 0, 1
"""The shard that is down, and the one that has its agents meanwhile."""


class Queue:
    """Takes so many events each second; how long the newest one waits is kept."""

    def __init__(self, rate: float) -> None:
        self._rate, self._waiting = rate, 0.0
        self.most_s = self.most_events = 0.0

    def take(self, events: float) -> float:
        """A second with so many events; those that it lets through."""
        done = min(self._rate, self._waiting + events)
        self._waiting += events - done
        self.most_events = max(self.most_events, events)
        self.most_s = max(self.most_s, self._waiting / self._rate)
        return done


def simulate(draw: random.Random) -> dict[str, float]:
    """Fifteen minutes of the fleet, a minute of it with a shard down."""
    shards, servers = [Queue(SHARD_S) for _ in range(SHARDS)], [Queue(SERVER_S) for _ in range(SERVERS)]
    working, ends, total = [0] * SHARDS, list[tuple[float, int]](), 0.0
    begins_s = AGENTS * AT_WORK / WORK_S
    for _ in range(round(AGENTS * AT_WORK)):  # those who are at work when it begins
        shard = draw.randrange(SHARDS)
        working[shard] += 1
        heapq.heappush(ends, (draw.expovariate(1 / WORK_S), shard))
    begin = draw.expovariate(begins_s)
    for second in range(SECONDS):
        while begin < second:
            shard = draw.randrange(SHARDS)
            working[shard] += 1
            heapq.heappush(ends, (begin + draw.expovariate(1 / WORK_S), shard))
            begin += draw.expovariate(begins_s)
        while ends and ends[0][0] < second:
            working[heapq.heappop(ends)[1]] -= 1
        load = [max(0.0, draw.gauss(mean, math.sqrt(mean))) for mean in (n * EVENTS_S for n in working)]
        if DOWN_FROM <= second < DOWN_FROM + DOWN_S:
            load[STANDS_IN] += load[DOWN]
            load[DOWN] = 0.0
        done = [shard.take(events) for shard, events in zip(shards, load, strict=True)]
        each = SHARDS // SERVERS
        for number, server in enumerate(servers):
            server.take(sum(done[number * each : (number + 1) * each]))
        total += sum(load)
    others = [shard for number, shard in enumerate(shards) if number != STANDS_IN]
    return {
        "events_s": round(total / SECONDS),
        "busiest_shard_events_s": round(max(shard.most_events for shard in others)),
        "longest_wait_at_a_shard_s": round(max(shard.most_s for shard in others), 2),
        "longest_wait_where_two_shards_are_one_s": round(shards[STANDS_IN].most_s, 2),
        "busiest_server_events_s": round(max(server.most_events for server in servers)),
        "longest_wait_at_a_server_s": round(max(server.most_s for server in servers), 2),
        "journal_mb_s": round(total / SECONDS * EVENT_BYTES / 1e6, 1),
        "journal_tb_a_day": round(total / SECONDS * EVENT_BYTES * 86_400 / 1e12, 2),
    }


if __name__ == "__main__":
    for seed in range(3):
        print(json.dumps({"seed": seed, **simulate(random.Random(seed))}))
