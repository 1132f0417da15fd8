"""Commands about an agent's metacognition: background tasks, thresholds, and guidance for its thinker."""

from __future__ import annotations

from collections.abc import Iterable

from app.commands.arguments import Prefix, Rest, Word, among, only_choice, word
from app.commands.command import Context, Form, GrammarError, Group, Show, Submit, Values, late
from app.commands.crew_arguments import handoff_choices, of_handoff
from engine.core import commands as cmd
from engine.core import crew_commands as cc
from engine.core.metacognition import MetaTask

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
WHEN = (
    ("now: ", "cuts a thought off, never a tool; a plan is made anew"),
    ("after: ", "after this action or thought; a plan is made anew"),
    ("plan: ", "in the next plan"),
)
CANCELLED = "cancelled by the operator"
command = Group("Thinking")
CANCEL_HANDOFF = (
    Form(Submit(cc.CancelHandoff, {"reason": CANCELLED}), word="handoffs", needs="crew"),
    of_handoff(cc.CancelHandoff, Rest("reason", "a reason", optional=True, default=CANCELLED)),
)
_task = among(list(MetaTask), f"'{{}}' is no task; tasks: {', '.join(TASKS)}", lower=True)


def _veto(context: Context, values: Values) -> cmd.Command:
    named, tail = word(values["what"], "a task or a background job")
    state = context.state
    if state is not None and state.meta.job(named) is not None:
        if tail:
            raise GrammarError(f"only a background job is expected; '{tail[:40]}' is too much")
        return cmd.CancelBackground(agent=context.agent, job=named)
    if tail not in ("", "on", "off"):
        raise GrammarError(f"only 'off' may follow, which lifts the veto; not '{tail[:40]}'")
    return cmd.VetoMeta(agent=context.agent, task=_task(named, context), lifted=tail == "off")


def _thresholds(context: Context, values: Values) -> cmd.Command:
    """`thresholds 9 14`, or `thresholds reflection 9 consolidation 14`."""
    words = values["numbers"].split()
    if all(each.isdigit() for each in words) and len(words) <= 2:
        words = [part for name, number in zip(THRESHOLDS, words, strict=False) for part in (name, number)]
    named = dict(zip(words[::2], words[1::2], strict=False))
    fits = len(words) % 2 == 0 and set(named) <= set(THRESHOLDS)
    if not fits or not all(number.isdigit() for number in named.values()):
        raise GrammarError("give numbers of successes: thresholds 9 14, or thresholds reflection 9")
    return cmd.SetThresholds.model_validate({"agent": context.agent, **{k: int(v) for k, v in named.items()}})


def _configure(context: Context, values: Values) -> cmd.Command:
    """`configure recovery.max_consecutive_errors=5`; what is not named stays as it is."""
    from engine.improve.agent_specification import settings_in
    from engine.improve.agent_types import CreationError

    try:
        given, rest = settings_in(values["settings"])
    except CreationError as error:
        raise GrammarError(str(error)) from None
    if rest or not all(isinstance(table, dict) for table in given.values()):
        raise GrammarError("settings look like this: configure recovery.max_consecutive_errors=5")
    held = context.state.config.meta if context.state else {}
    settings = {name: {**held.get(name, {}), **table} for name, table in given.items()}
    return cmd.ConfigureAgent(agent=context.agent, settings=settings)


def _tasks(_context: Context) -> Iterable[tuple[str, str]]:
    return [(task.value, about) for task, about in TASKS.items()]


def _jobs(context: Context) -> Iterable[tuple[str, str]]:
    for job in context.state.meta.running if context.state else ():
        yield job.id, f"{job.task}: {job.why}"


def _settings(_context: Context) -> Iterable[tuple[str, str]]:
    yield "recovery.max_consecutive_errors=", "failures in a row after which you are asked"
    for name, does in (
        ("enable_path_correction", "put a path right that is written otherwise"),
        ("use_llm_extraction", "ask a model for parameters that are missing"),
        ("fallback_to_defaults", "take defaults for parameters that are missing"),
    ):
        yield f"parameter_processing.{name}=", f"true or false: {does}"


def _vetoed(context: Context) -> Iterable[tuple[str, str]]:
    yield from _jobs(context)
    vetoed = context.state.meta.vetoed if context.state else ()
    for task, about in TASKS.items():
        yield (f"{task.value} off", "let it again") if task in vetoed else (task.value, about)


ONLY_JOB = only_choice(_jobs, "a background job is missing")
COMMANDS = (
    command(
        "reflect", cmd.ForceMeta, Word("task", "a task", True, parse=_task, offers=_tasks, default="reflect")
    ),
    command("consolidate", Submit(cmd.ForceMeta, {"task": "consolidate"})),
    command(
        "veto",
        Submit(_veto),
        Rest("what", "a task or a background job", shown="TASK [off] | veto JOB", offers=_vetoed),
    ),
    command(
        "cancel",
        cmd.CancelBackground,
        Word("job", "a background job", True, offers=_jobs, default=ONLY_JOB),
        forms=CANCEL_HANDOFF,
        choices=lambda context: [*_jobs(context), *handoff_choices(context)],
    ),
    command(
        "thresholds",
        Submit(_thresholds),
        Rest("numbers", "a number of successes", shown="REFLECTION [CONSOLIDATION]"),
    ),
    command(
        "configure",
        Submit(_configure),
        Rest("settings", "a setting", shown="TABLE.NAME=VALUE …", offers=_settings),
    ),
    command(
        "guide",
        cmd.Guide,
        Prefix("when", "(now|after|plan):", "now:|after:|plan:"),
        Rest("text", "the guidance"),
        forms=(Form(Show(late("inbox:show_messages")), when=r"\Z"),),
        choices=lambda _context: WHEN,
    ),
)
