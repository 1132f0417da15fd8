"""Cases 47 to 62: what a command may do to processes, and how it ends."""

from __future__ import annotations

from tests.security.case import Case

_JAIL = "tests/engine/sandbox/test_jail.py::"
_ENDS = "tests/engine/sandbox/test_jail_ends.py::"
_LIMITS = "tests/engine/sandbox/test_jail_limits.py::"
_PROCESS = "tests/engine/sandbox/test_process.py::"
_DEGRADES = "tests/engine/sandbox/test_jail_degrades.py::"
_SIGNALS = ("signal 0", "SIGCONT", "tgkill", "sigqueue", "tgsigqueue", "pidfd signal")

CASES = (
    Case(
        47,
        "Signals to others",
        "kill, tgkill, sigqueue, pidfd and a socket's owner, to cockpit, supervisor, another jail, process 1",
        inside=(
            *(f"{name} to the {whose}" for whose in ("cockpit", "other jail") for name in _SIGNALS),
            *("signal the supervisor", "stop the supervisor", "signal process 1"),
            *("signal by the owner of a socket",),
        ),
    ),
    Case(
        48,
        "kill(-1, 9) inside",
        "kill everything that can be reached",
        "only the jail dies",
        works=("kill everything reaches the jail alone",),
        tests=(f"{_JAIL}test_killing_everything_kills_only_the_jail",),
    ),
    Case(
        49,
        "Looking into the cockpit",
        "ptrace attach and seize, process_vm_readv and _writev, pidfd_open and _getfd, kcmp",
        inside=(
            *("ptrace", "ptrace seize", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd"),
            "kcmp",
        ),
    ),
    Case(
        50,
        "Limits and priority of the cockpit",
        "prlimit, setpriority, oom_score_adj, affinity, scheduler, ioprio_set; reading its group",
        "refused",
        "refused; a process's group and priority can be read, and doctor names it",
        inside=(
            *("prlimit", "setpriority", "setpriority of the user", "oom score of the cockpit", "affinity"),
            *("scheduler", "scheduler's attributes", "priority of input and output"),
        ),
        seen=("a process's group",),
    ),
    Case(
        51,
        "Fork bombs",
        "with and without sessions of their own",
        "dead soon after the limit",
        tests=(
            f"{_JAIL}test_a_fork_bomb_dies_with_its_command",
            f"{_ENDS}test_a_fork_bomb_of_sessions_dies_with_its_command",
        ),
    ),
    Case(
        52,
        "Daemons",
        "fork twice, setsid, outlive the command",
        "dead before the result is delivered",
        tests=(
            f"{_JAIL}test_daemons_and_stopped_processes_die_with_their_command",
            f"{_PROCESS}test_run_kills_daemons_that_outlive_the_command_and_keeps_its_code",
        ),
    ),
    Case(
        53,
        "Deaf, stopped and silent",
        "ignore every signal, stop oneself, close all streams",
        "ended by time",
        tests=(
            f"{_ENDS}test_what_ignores_signals_falls_silent_and_stops_itself_is_ended_by_time",
            f"{_PROCESS}test_run_kills_the_whole_tree_after_the_limit",
        ),
    ),
    Case(
        54,
        "The cockpit is killed",
        "SIGKILL to the cockpit while a command runs",
        "no process of it is left",
        tests=(
            f"{_JAIL}test_the_death_of_the_cockpit_ends_the_jail",
            f"{_PROCESS}test_the_death_of_the_cockpit_ends_its_commands",
        ),
    ),
    Case(
        55,
        "The cockpit hangs",
        "its loop is blocked, and the whole process stopped",
        "the time limit holds",
        tests=(
            f"{_ENDS}test_the_time_limit_holds_while_the_cockpit_is_stopped",
            f"{_PROCESS}test_the_time_limit_holds_while_the_cockpit_is_stalled",
        ),
    ),
    Case(
        56,
        "The operator cancels",
        "once and twice, with a tree of daemons",
        "the tree is dead",
        tests=(
            f"{_ENDS}test_a_cancelled_command_leaves_nothing",
            f"{_PROCESS}test_cancelling_twice_still_waits_for_the_end",
        ),
    ),
    Case(
        57,
        "Taking memory",
        "heap, shared mappings, memfd, tmpfs, pipe buffers, address space for page tables",
        "ended or refused, the cockpit lives",
        tests=(
            f"{_JAIL}test_what_no_rlimit_counts_is_watched",
            f"{_LIMITS}test_each_way_to_take_memory_descriptors_and_space_has_an_end",
            f"{_LIMITS}test_memory_in_files_without_a_name_counts",
            f"{_PROCESS}test_a_tree_over_its_memory_is_ended",
        ),
        absent=(
            "the floor of free memory, which alone holds memory files that are mapped, untouched and closed: "
            "it would take half of this machine's memory",
        ),
    ),
    Case(
        58,
        "Taking time",
        "burn the processor, sleep for ever",
        "processor limit, time limit",
        tests=(
            f"{_JAIL}test_processor_time_is_limited",
            f"{_PROCESS}test_endless_output_within_the_output_limit_ends_by_time",
        ),
    ),
    Case(
        59,
        "Descriptors and threads",
        "open and start until it is refused",
        "refused",
        tests=(
            f"{_LIMITS}test_each_way_to_take_memory_descriptors_and_space_has_an_end",
            f"{_ENDS}test_a_bomb_of_threads_is_held",
        ),
    ),
    Case(
        60,
        "Gaining privileges",
        "su, sudo, pkexec, newuidmap, fusermount, mount; capabilities; another user id",
        "no privilege",
        inside=(
            *(
                f"{name} gains nothing"
                for name in ("su", "sudo", "pkexec", "newuidmap", "fusermount", "mount")
            ),
            *("privileges can be gained", "a capability is held", "become another user"),
        ),
    ),
    Case(
        61,
        "The supervisor is killed",
        "by the operator's shell, while daemons hide where they come from",
        "the jail dies, the result says so",
        tests=(
            f"{_JAIL}test_the_death_of_the_supervisor_ends_even_what_hid_its_origin",
            f"{_PROCESS}test_killing_the_supervisor_frees_nobody",
        ),
    ),
    Case(
        62,
        "The guard before kill(-1)",
        "the ruleset stubbed out; no canary; a canary that is gone or another user's",
        "the guard refuses",
        tests=(
            f"{_DEGRADES}test_the_guard_refuses_with_the_ruleset_stubbed_out",
            f"{_DEGRADES}test_a_process_that_is_gone_or_anothers_and_no_process_prove_nothing",
            f"{_DEGRADES}test_without_the_guard_only_the_tree_is_killed",
        ),
    ),
)
