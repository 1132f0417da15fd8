"""Makes the recordings of the demonstration anew: `python -m tests.recordings [NAME …]`."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.recordings import RECORDINGS, record
from tests.recordings.material import MATERIAL


def main(names: list[str]) -> int:
    for name in names or MATERIAL:
        with tempfile.TemporaryDirectory(prefix="recording-") as place:
            recording = asyncio.run(record(name, Path(place) / "workspace"))
        text = json.dumps(recording, ensure_ascii=False, indent=1) + "\n"
        (RECORDINGS / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}: {len(recording['answers'])} answers, {len(text):,} characters")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
