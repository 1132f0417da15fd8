"""Whether an agent is stuck: a pure function of its newest actions.

There are four signs: the same call again with the same answer, back and forth between two calls, the same
error over and over, and nothing new for a while. Honest polling is no sign: it pauses, and its answer can
still change. Neither is what was planned before any of it ran, nor what recovery repeats after a delay of its
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from engine.core.metacognition import ActionSort, MetaState, PastAction, Signal, StuckNoticed
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.value import dataclass

KEY = "stuck"
"""Where an agent's configuration says what being stuck leads to."""
TELL, HOLD, OFF = "tell", "hold", "off"
"""A notice; a notice and a pause; nothing."""
SAME = 3
"""Times that the same call gives the same answer, with nothing new between them."""
SAME_LOOKS = 4
"""Times that the same is looked at in vain among other looks."""
NEAR = 12
"""Newest actions in which those looks and errors are searched."""
ERRORS = 4
"""Failures of one sort, whatever was tried between them."""
ERRORS_OF_LOOKS = 5
"""The same for questions: guessing where something is takes a few wrong guesses."""
WORDS_OF_A_SORT = 5
"""Words from which on an error may differ from another one of its sort in one of them."""
FAILURES = 6
"""Failures of any sort in a row."""
STALE = 5
"""Actions in a row that were done before with the same answer."""
IN_VAIN = 8
"""Actions in a row that were done before, or asked another way and gave an answer that was known."""
POLLED_IN_VAIN = 20
"""Honest polls without a change after which they count as any other action."""
PAUSE_MS = 2_000
GROWS, REGULAR = 1.5, 0.2
"""A gap grows when it is so many times the one before; it is regular when it differs by this part at most."""


class StuckSettingError(ValueError):
    """The setting cannot be used; the message says what it may be."""


def read_stuck(meta: Mapping[str, Any]) -> str:
    """What being stuck leads to, as an agent's configuration has it: `tell`, `hold` or `off`.

    Raises:
        StuckSettingError: it is none of these.
    """
    setting = meta.get(KEY, TELL)
    if setting not in (TELL, HOLD, OFF):
        raise StuckSettingError(f'{KEY}: it is "{TELL}", "{HOLD}" or "{OFF}", not {str(setting)[:40]!r}')
    return str(setting)


@dataclass(frozen=True, slots=True)
class _Turn:
    """An action that counts."""

    done: PastAction
    fresh: bool
    """It was not done before with this answer, or something was changed since."""
    known: bool
    """It was asked another way, and its answer was known."""

    @property
    def same_as(self) -> tuple[str, str, str]:
        """Equal for the same call with the same answer."""
        return (*self.done.same_as, self.done.answer)


def signs_of(meta: MetaState) -> tuple[Signal, ...]:
    """Signs that the agent may be stuck now; none for nearly all agents.

    Args:
        meta: whose window holds the newest actions of the agent's own, oldest first.
    """
    done = [action for action in meta.window if action.phase == meta.phase]
    counted = list(_counted(done))
    if not counted or (done[-1] is not counted[-1] and done[-1].sort is not ActionSort.PAUSE):
        return ()
    turns = _turns(counted)
    signals = (_repeated(turns), _alternating(turns), _erring(turns), _in_vain(turns))
    return tuple(signal for signal in signals if signal is not None)


def notice_of(state: AgentState) -> StuckNoticed | None:
    """What is to be recorded of an agent's being stuck, or being so no longer; None for nothing.

    It is recorded once, however long the agent stays stuck, and again when it gets stuck anew. Nothing is
    recorded while the operator is asked for a decision.
    """
    try:
        setting = read_stuck(state.config.meta)
    except StuckSettingError:
        setting = TELL
    looks = setting != OFF and state.has_work and state.intervention is None
    signs = signs_of(state.meta) if looks else ()
    if bool(signs) == (state.meta.stuck is not None):
        return None
    return StuckNoticed(signs=signs, holds=bool(signs) and setting == HOLD)


# ------------------------------------------------------------------ what counts


def _counted(done: Sequence[PastAction]) -> Iterator[PastAction]:
    """Actions without pauses, honest polls, retries of recovery, and what was planned as a whole."""
    planned: set[tuple[str, str, str]] = set()
    for at, action in enumerate(done):
        whole = (*action.same_as, action.decided)
        meant = bool(action.decided) and whole in planned
        planned.add(whole)
        waits = action.sort is ActionSort.PAUSE and not (action.polls and action.may_change is False)
        if waits or action.again or meant:
            continue
        if not _polls_honestly(done[: at + 1]):
            yield action


def _polls_honestly(done: Sequence[PastAction]) -> bool:
    """Whether the last of these asks again, after a pause, for what may still come."""
    last = done[-1]
    if last.sort not in (ActionSort.LOOK, ActionSort.PAUSE) or last.may_change is False:
        return False
    polls = [at for at, other in enumerate(done) if other.same_as == last.same_as]
    unchanged = 0
    for at in reversed(polls):
        if done[at].answer != last.answer:
            break
        unchanged += 1
    if len(polls) < 2 or unchanged > POLLED_IN_VAIN:
        return False
    between = done[polls[-2] + 1 : -1]
    if any(other.sort is ActionSort.PAUSE for other in between):
        return True
    gaps = [done[at].gap_ms for at in polls[-max(unchanged - 1, 1) :]]
    return last.may_change is True and _deliberate(gaps)


def _deliberate(gaps: Sequence[int]) -> bool:
    """Whether these are pauses that were meant: regular or growing, unlike the time that thinking takes."""
    pairs = list(pairwise(gaps))
    regular = all(abs(later - sooner) <= REGULAR * max(later, sooner) for sooner, later in pairs)
    growing = all(later >= GROWS * sooner for sooner, later in pairs)
    return min(gaps) >= PAUSE_MS and (regular or growing)


def _turns(counted: Sequence[PastAction]) -> list[_Turn]:
    """What of it was new: after an edit that was not made before, everything may be looked at anew."""
    edits: set[tuple[str, str, str]] = set()
    seen: set[tuple[str, str, str]] = set()
    answers: set[str] = set()
    turns = []
    for action in counted:
        whole = (*action.same_as, action.answer)
        if action.sort is ActionSort.EDIT:
            fresh = whole not in edits
            edits.add(whole)
            if fresh and action.ok:
                seen, answers = set(), set()
        else:
            fresh = whole not in seen
            seen.add(whole)
        known = action.sort is ActionSort.LOOK and action.answer in answers
        answers.add(action.answer)
        turns.append(_Turn(action, fresh, known))
    return turns


# ------------------------------------------------------------------ the signs


def _repeated(turns: Sequence[_Turn]) -> Signal | None:
    last = turns[-1]
    if last.fresh:
        return None
    times = 0
    for turn in reversed(turns):
        if turn.same_as == last.same_as:
            times += 1
        elif turn.fresh:
            break
    return _again(last, times) if times >= SAME else _among_looks(turns)


def _among_looks(turns: Sequence[_Turn]) -> Signal | None:
    """The same looked at again and again, with other looks between."""
    last, times = turns[-1], 0
    for turn in reversed(turns[-NEAR:]):
        if turn.done.sort is not ActionSort.LOOK:
            break
        times += turn.same_as == last.same_as
    return _again(last, times) if times >= SAME_LOOKS else None


def _again(turn: _Turn, times: int) -> Signal:
    return Signal("repeated", Reason("stuck.repeated", times=times, subject=turn.done.subject))


def _alternating(turns: Sequence[_Turn]) -> Signal | None:
    if len(turns) < 4:
        return None
    first, second, third, fourth = (turn.same_as for turn in turns[-4:])
    if not (first == third and second == fourth and first != second) or turns[-1].fresh or turns[-2].fresh:
        return None
    return Signal(
        "alternating",
        Reason("stuck.alternating", first=turns[-2].done.subject, second=turns[-1].done.subject),
    )


def _erring(turns: Sequence[_Turn]) -> Signal | None:
    last = turns[-1].done
    if last.ok:
        return None
    alike, mended = 0, set()
    for turn in reversed(turns[-NEAR:]):
        action = turn.done
        if action.ok:
            mended.add(action.same_as)
            if action.same_as == last.same_as:
                break
        elif action.same_as not in mended:
            if not _same_error(action, last):
                break
            alike += 1
    looks = last.sort is ActionSort.LOOK
    if alike >= (ERRORS_OF_LOOKS if looks else ERRORS):
        about = {"subject": last.subject, "error": last.error}
        return Signal("error_loop", Reason("stuck.same-error", times=alike, **about))
    row = _failures_in_a_row(turns)
    return Signal("error_loop", Reason("stuck.failures", failures=row)) if row >= FAILURES else None


def _failures_in_a_row(turns: Sequence[_Turn]) -> int:
    row = 0
    for turn in reversed(turns):
        if turn.done.ok:
            break
        row += 1
    return row


def _same_error(action: PastAction, other: PastAction) -> bool:
    """The same call must fail with the same words, another one with the same sort of error."""
    if action.same_as == other.same_as:
        return action.answer == other.answer
    return action.call == other.call and _alike(action.error.split(), other.error.split())


def _alike(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether they are the same but for one word, which names what the error is about."""
    if len(words) != len(others):
        return False
    differing = sum(word != other for word, other in zip(words, others, strict=True))
    return differing <= (len(words) >= WORDS_OF_A_SORT)


def _in_vain(turns: Sequence[_Turn]) -> Signal | None:
    stale = in_vain = 0
    for turn in reversed(turns):
        if turn.fresh and not turn.known:
            break
        in_vain += 1
        if in_vain == stale + 1 and not turn.fresh:
            stale += 1
    if stale < STALE and in_vain < IN_VAIN:
        return None
    return Signal("no_progress", Reason("stuck.no-progress", actions=in_vain))
