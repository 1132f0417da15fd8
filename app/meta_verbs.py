"""The words of the command bar about an agent's metacognition."""

from __future__ import annotations

from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Reader, Verb, only, word
from engine.domain import commands as cmd
from engine.domain.metacognition import MetaTask

TASKS = {
    MetaTask.REFLECT: "look back on the work",
    MetaTask.CONSOLIDATE: "bring memories together",
    MetaTask.OPTIMISE: "cut working memory down to size",
    MetaTask.PROMOTE: "let memories settle that have earned it",
    MetaTask.ADAPT: "let the thresholds follow how the work goes",
    MetaTask.MAINTAIN: "let expired memories go",
    MetaTask.LINK: "link like memories",
}
THRESHOLDS = ("reflection", "consolidation")


def _force(usual: MetaTask) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        return cmd.ForceMeta(agent=context.agent, task=_task(only(rest, "a task")) if rest else usual.value)

    return read


def _task(name: str) -> str:
    found = [task for task in TASKS if task.value == name.lower()]
    if not found:
        raise GrammarError(f"'{name[:40]}' is no task; tasks: {', '.join(TASKS)}")
    return found[0].value


def _read_veto(rest: str, context: Context) -> Intent:
    named, tail = word(rest, "a task or a background job")
    state = context.state
    if state is not None and state.meta.job(named) is not None:
        return cmd.CancelBackground(agent=context.agent, job=only(rest, "a background job"))
    if tail not in ("", "on", "off"):
        raise GrammarError(f"only 'off' may follow, which lifts the veto; not '{tail[:40]}'")
    return cmd.VetoMeta(agent=context.agent, task=_task(named), lifted=tail == "off")


def _read_cancel(rest: str, context: Context) -> Intent:
    running = [job for job, _ in _jobs(context)]
    if not rest and len(running) == 1:
        return cmd.CancelBackground(agent=context.agent, job=running[0])
    return cmd.CancelBackground(agent=context.agent, job=only(rest, "a background job"))


def _read_thresholds(rest: str, context: Context) -> Intent:
    """`thresholds 9 14`, or `thresholds reflection 9 consolidation 14`."""
    words = rest.split()
    if words and all(one.isdigit() for one in words) and len(words) <= 2:
        words = [part for name, number in zip(THRESHOLDS, words, strict=False) for part in (name, number)]
    named = dict(zip(words[::2], words[1::2], strict=False))
    fits = words and len(words) % 2 == 0 and set(named) <= set(THRESHOLDS)
    if not fits or not all(number.isdigit() for number in named.values()):
        raise GrammarError("give numbers of successes: thresholds 9 14, or thresholds reflection 9")
    return cmd.SetThresholds.model_validate({"agent": context.agent, **{k: int(v) for k, v in named.items()}})


def _read_guide(rest: str, context: Context) -> Intent:
    if not rest:
        raise GrammarError("the guidance is missing")
    return cmd.Guide(agent=context.agent, text=rest)


def _tasks(context: Context) -> Iterable[tuple[str, str]]:
    yield from ((task.value, about) for task, about in TASKS.items())


def _jobs(context: Context) -> Iterable[tuple[str, str]]:
    for job in context.state.meta.running if context.state else ():
        yield job.id, f"{job.task}: {job.why}"


def _vetoed(context: Context) -> Iterable[tuple[str, str]]:
    yield from _jobs(context)
    vetoed = context.state.meta.vetoed if context.state else ()
    for task, about in TASKS.items():
        yield (f"{task.value} off", "let it again") if task in vetoed else (task.value, about)


VERBS = (
    Verb("reflect", "reflect [TASK]", "have the agent look back on its work now, or do another task",
         _force(MetaTask.REFLECT), "Thinking", choices=_tasks),
    Verb("consolidate", "consolidate", "bring the agent's memories together now",
         _force(MetaTask.CONSOLIDATE), "Thinking"),
    Verb("veto", "veto TASK [off] | veto JOB", "let a background task not be begun by itself, or cut one off",
         _read_veto, "Thinking", choices=_vetoed),
    Verb("cancel", "cancel [JOB]", "cut a background job of the agent's thinking off", _read_cancel,
         "Thinking", choices=_jobs),
    Verb("thresholds", "thresholds REFLECTION [CONSOLIDATION]", "after how many successes these are due",
         _read_thresholds, "Thinking"),
    Verb("guide", "guide TEXT", "say something to the thinker; its next prompt has it, once", _read_guide,
         "Thinking"),
)  # fmt: skip
