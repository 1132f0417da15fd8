"""Commands to Mastermind without a screen: jobs are followed to their end, what it knows is shown."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from app.commands.command import Answer, CommandHost, Values, answer_message
from app.projection import improve_text as lines
from engine.api.workspace_engine import WorkspaceEngine
from engine.core.campaigns import ApplyCandidate, CancelJob, ForMastermind, StartJob
from engine.core.improvement import JobRecord, JobStatus, MastermindState
from engine.core.journal import BlobError
from engine.core.text import clean, clean_line

ProgressCallback = Callable[[JobRecord], None]
"""Called whenever a job is elsewhere than before."""

EXIT_OF = {JobStatus.DONE: 0, JobStatus.NEEDS_OPERATOR: 3}
"""Exit codes of a job's result; 1 for all others."""
STARTS = (StartJob, ApplyCandidate)
"""Commands whose receipt comes before the job they began is over."""


# ------------------------------------------------------------------ jobs


async def run_improve_command(
    engine: WorkspaceEngine,
    command: ForMastermind,
    *,
    operator: str,
    progress: ProgressCallback | None = None,
) -> Answer:
    """Carry out a command; what continues as a job is waited for, and cancelled with whoever waits."""
    receipt = await engine.submit(command, operator=operator)
    job = str(receipt.data.get("job", ""))
    if not receipt.ok or not isinstance(command, STARTS) or not job:
        answer = {"ok": receipt.ok, "message": receipt.message, "event": receipt.event}
        return (0 if receipt.ok else 1), {**receipt.data, **answer}, receipt.message
    try:
        return job_answer(await _follow_job(engine, job, progress))
    except asyncio.CancelledError:
        await asyncio.shield(engine.submit(CancelJob(job=job), operator=operator))
        raise


async def _follow_job(engine: WorkspaceEngine, job: str, progress: ProgressCallback | None) -> JobRecord:
    """Wait until a job is over, reporting how far it is."""
    mastermind = await engine.mastermind()
    waiting = asyncio.create_task(mastermind.wait(job))
    try:
        while not waiting.done():
            if progress is not None:
                progress(mastermind.state.jobs[job])
            news = asyncio.create_task(mastermind.stream.changed())
            await asyncio.wait({waiting, news}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        return waiting.result()
    finally:
        waiting.cancel()


def job_answer(job: JobRecord) -> Answer:
    """The result of a job."""
    code = EXIT_OF.get(job.status, 1)
    answer = {
        **job.answer,
        "ok": code == 0,
        "job": job.id,
        "verb": job.verb,
        "status": job.status.value,
        "message": job.message,
        "event": job.event,
        **({"error": job.error} if job.error else {}),
    }
    about, argument = job.answer, clean_line(job.argument)
    text = f"{lines.MARKS[job.status]} {job.id} {job.status}: {clean(job.message, limit=20_000)}"
    if digest := about.get("approve"):
        text += f"\nto do these steps: {job.verb} --approve {clean_line(str(digest))} {argument}"
    if about.get("choices"):
        text += f"\nto choose one: {job.verb} --component ID {argument}"
    return code, answer, text


class _Progress:
    """Shows a job's progress on a terminal, each time over what stood there."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, job: JobRecord) -> None:
        words = f"{job.id} {job.status} {lines.progress_text(job)} {job.text}"
        self.show("" if job.status.over else clean_line(words, limit=100))

    def show(self, text: str) -> None:
        """Show a line; an empty one takes it away."""
        if text != self._shown:
            self._shown = text
            with suppress(OSError):
                sys.stderr.write(f"\r\x1b[2K{text}")
                sys.stderr.flush()


async def run_without_screen(
    engine: WorkspaceEngine, command: ForMastermind, quiet: bool, operator: str
) -> Answer:
    """Carry a command out without a screen; its progress is shown where there is a terminal."""
    progress = _Progress() if not quiet and sys.stderr.isatty() else None
    try:
        return await run_improve_command(engine, command, operator=operator, progress=progress)
    finally:
        if progress is not None:
            progress.show("")


# ------------------------------------------------------------------ what Mastermind knows


async def _state(host: CommandHost) -> MastermindState:
    return (await host.engine.mastermind()).state


async def show_backlog(host: CommandHost, _values: Values) -> Answer:
    """What could be better."""
    state = await _state(host)
    return 0, {"items": [asdict(item) for item in lines.sorted_items(state)]}, lines.backlog_text(state)


async def show_jobs(host: CommandHost, _values: Values) -> Answer:
    """The background jobs."""
    state = await _state(host)
    return 0, {"jobs": [asdict(job) for job in state.jobs.values()]}, lines.jobs_text(state)


async def show_campaigns(host: CommandHost, values: Values) -> Answer:
    """All campaigns, or one of them in full."""
    state, name = await _state(host), values["campaign"]
    if not name:
        campaigns = [asdict(campaign) for campaign in state.campaigns.values()]
        return 0, {"campaigns": campaigns}, lines.campaigns_text(state)
    if (campaign := state.campaigns.get(name)) is None:
        return _no_campaign(state, name)
    return 0, {"campaign": asdict(campaign)}, lines.campaign_text(campaign)


def _no_campaign(state: MastermindState, name: str) -> Answer:
    known = ", ".join(list(state.campaigns)[-8:]) or "none yet"
    return answer_message(False, f"there is no campaign {name}; campaigns: {known}")


async def show_page(host: CommandHost, values: Values) -> Answer:
    """Write a campaign as a page of HTML; an older page is replaced, and no other file."""
    from app.projection.campaign_page import page  # late: its pictures are drawn by widgets

    mastermind, texts = await host.engine.mastermind(), dict[str, str]()
    if (campaign := mastermind.state.campaigns.get(values["campaign"])) is None:
        return _no_campaign(mastermind.state, values["campaign"])
    for candidate in campaign.candidates:
        try:
            texts[candidate.id] = await mastermind.diff(candidate.id)
        except BlobError as error:
            texts[candidate.id] = str(error)
    file = values["file"]
    written = await asyncio.to_thread(_written, file, page(campaign, texts))
    return answer_message(not written, written or f"wrote {campaign.id} to {file}; open it in a browser")


def _written(name: str, text: str) -> str:
    """Write a page to a file; why that was not done, or nothing."""
    file = Path(name).expanduser()
    try:
        if file.exists() and file.read_text("utf-8").partition("<style>")[0] != text.partition("<style>")[0]:
            return f"{file} is another file; name one that is not there yet"
        file.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        return f"the page was not written to {file}: {error}"
    return ""


async def show_status(host: CommandHost, _values: Values) -> Answer:
    """What Mastermind did and why."""
    state = await _state(host)
    answer = {
        "jobs": [asdict(job) for job in state.jobs.values() if not job.status.over],
        "backlog": len(state.items),
        "campaigns": {campaign.id: campaign.status.value for campaign in state.campaigns.values()},
        "autonomous": state.autonomous,
        "log": [asdict(entry) for entry in state.log],
    }
    return 0, answer, lines.status_text(state)
