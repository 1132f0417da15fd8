"""`pilothouse`, whose shards under Ray write down under which token their engines run.

Run as `python -m tests.fleet_actor WORDS`; the file is that of `FLEET_WITNESS` on the machines of the fleet.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from app.cli.fleet import cluster
from app.cli.main import main
from tests.fleet_shard import witness

FILE = "FLEET_WITNESS"


class WitnessedActor(cluster.ShardActor):
    """The actor of a shard, with a witness."""

    def __init__(self, plan: tuple[Any, ...]) -> None:
        super().__init__(plan)
        witness(self._shard, Path(os.environ[FILE]))


if __name__ == "__main__":
    from tests.fleet_actor import WitnessedActor as Importable

    cluster.ShardActor = Importable  # type: ignore[misc]
    sys.exit(main())
