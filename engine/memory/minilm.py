"""The model all-MiniLM-L6-v2 of this machine, in a process of its own.

Loading takes half a second and 200 MB, and holds the interpreter's lock for long parts of it; so it is done
elsewhere, at a low priority, when the first text comes. The process ends when it was not asked for a while.
"""

from __future__ import annotations

import asyncio
import json
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress

from engine.core.secrets import plain_environment
from engine.memory.embedding import BATCH, INSTALL, TEXT_LIMIT, EmbedderError, Kind, Vector

DIMENSION = 384
ID = "minilm-l6-int8@8199be6f"
IDLE_S = 600.0
"""After which the process ends."""
ANSWER_S = 60.0
"""In which a batch must be answered, loading included."""


class MiniLM:
    """Texts as vectors of 384 numbers."""

    id = ID
    dim = DIMENSION

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def embed(self, texts: Sequence[str], kind: Kind) -> list[Vector]:
        """See `Embedder`; between two batches another caller may have its turn."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors: list[Vector] = [array("f")] * len(texts)
        for at in range(0, len(order), BATCH):
            places = order[at : at + BATCH]
            answers = await self._ask([texts[place][:TEXT_LIMIT] for place in places])
            for place, vector in zip(places, answers, strict=True):
                vectors[place] = vector
        return vectors

    async def _ask(self, texts: list[str]) -> list[Vector]:
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            try:
                async with asyncio.timeout(ANSWER_S):
                    answer = await self._exchange(texts)
            except (TimeoutError, OSError, EOFError, ValueError) as error:
                await self._end()
                raise EmbedderError(f"the embedder's process did not answer ({error!r})") from error
            except BaseException:
                await self._end()  # half an answer would be taken for that of the next batch
                raise
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._kill)
        size = DIMENSION * array("f").itemsize
        return [array("f", answer[at : at + size]) for at in range(0, len(answer), size)]

    async def _exchange(self, texts: list[str]) -> bytes:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "engine.memory.minilm_process"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=plain_environment(),
                start_new_session=True,  # ctrl+c in a terminal is not for it
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(texts).encode() + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        told = json.loads(line) if line else {"error": f"it ended. Is all of it installed? {INSTALL}"}
        if told["error"]:
            raise EmbedderError(f"the embedder cannot be used: {told['error']}")
        return await process.stdout.readexactly(len(texts) * DIMENSION * 4)

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _end(self) -> None:
        self._kill()
        if self._process is not None:
            await self._process.wait()
            self._process = None

    async def close(self) -> None:
        """End the process."""
        if self._idle is not None:
            self._idle.cancel()
        await self._end()
