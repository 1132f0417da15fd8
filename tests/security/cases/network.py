"""Cases 63 to 83: the network, other ways of talking, and what reaches the operator's terminal."""

from __future__ import annotations

from tests.security.case import Case

_JAIL = "tests/engine/sandbox/test_jail.py::"
_PROCESS = "tests/engine/sandbox/test_process.py::"
_FILTER = "tests/engine/sandbox/test_seccomp_filter.py::"
_PANES = "tests/widgets/test_hostile_text.py::"
_COCKPIT = "tests/app/cockpit/test_cockpit_hostile_text.py::"
_STREAM = "tests/widgets/test_ansi_stream.py::"
_TEXT = "tests/engine/agent/test_clean_text.py::"

CASES = (
    Case(
        63,
        "The network is off",
        "TCP, UDP, names, IPv6, MPTCP, fast open, listen, raw, ICMP, SCTP and eight other families",
        inside=(
            *("tcp", "udp", "name by DNS", "tcp by IPv6", "udp by IPv6", "mptcp", "tcp fast open by sendto"),
            *("tcp fast open by sendmsg", "listen without a name", "bind", "raw", "icmp", "sctp", "netlink"),
            *("packet", "vsock", "crypto", "xdp", "bluetooth"),
        ),
        tests=(f"{_FILTER}test_sockets_follow_the_network",),
    ),
    Case(
        64,
        "Calls past the filter",
        "io_uring, 32-bit calls by int 0x80, x32",
        "refused or killed",
        inside=("io_uring", "ia32 call", "x32 call"),
        tests=(
            f"{_FILTER}test_another_architectures_calls_kill_the_program",
            f"{_FILTER}test_x32_calls_kill_the_program",
        ),
    ),
    Case(
        65,
        "Only some ports",
        "other ports on this machine, MPTCP, bind and listen, with the network on ports alone",
        tests=(
            f"{_JAIL}test_with_ports_only_these_are_reached",
            f"{_FILTER}test_with_ports_nothing_listens_and_tcp_goes_no_other_way",
        ),
    ),
    Case(
        66,
        "pip and the network",
        "install from an index on a granted port; install with the network off",
        "works; fails soon, with a hint",
        tests=(
            "tests/engine/sandbox/test_jail_installs.py::test_packages_are_installed_and_hostile_ones_learn_nothing",
            f"{_JAIL}test_a_port_of_the_policy_is_reached",
            "tests/engine/tools/test_simple_coder.py::test_with_the_network_off_an_install_fails_with_a_hint",
        ),
    ),
    Case(67, "Abstract Unix sockets", "connect to one of the cockpit's", inside=("abstract socket",)),
    Case(
        68,
        "Unix sockets by path",
        "connect to the cockpit's by path and by link, datagrams, docker, D-Bus, agents, tmux, X11, Wayland",
        inside=(
            *("socket by path", "socket by a path through the root", "datagram pair to a path"),
            *("datagram to a path", "sockets of the system, desktop and tmux"),
        ),
    ),
    Case(
        69,
        "Talking among themselves",
        "socketpair, pipes, multiprocessing",
        "work",
        "socketpair and pipes work; multiprocessing has no shared memory",
        works=("socketpair", "pipe"),
        tests=(f"{_JAIL}test_full_has_shared_memory_a_forkserver_and_a_proc_of_its_own",),
    ),
    Case(
        70,
        "System V, POSIX queues, keys",
        "shared memory, semaphores, messages, a queue, the keyring; bpf, perf, userfaultfd",
        inside=(
            *("shared memory of System V", "semaphores of System V", "messages of System V"),
            *("message queue of POSIX", "keyring", "add a key", "bpf", "userfaultfd", "perf"),
        ),
    ),
    Case(
        71,
        "A cloud's metadata address",
        "169.254.169.254:80 with the network on ports",
        "documented",
        tests=("tests/engine/sandbox/test_security.py::test_a_grant_of_ports_says_that_every_host_is_meant",),
        absent=("a connection: the machine that runs this may stand in a cloud",),
    ),
    Case(
        72,
        "Inherited descriptors",
        "fstat of 3 to 1023",
        "none is open",
        inside=("inherited descriptors",),
        tests=(f"{_PROCESS}test_a_child_has_no_terminal_and_no_inherited_descriptor",),
    ),
    Case(
        73,
        "The environment",
        "names off the allow-list, values equal to a secret",
        "none",
        inside=("secrets in the environment",),
        tests=(
            f"{_PROCESS}test_no_secret_of_the_cockpit_reaches_a_child",
            f"{_PROCESS}test_a_child_of_this_very_process_does_not_see_its_environment",
        ),
    ),
    Case(
        74,
        "Secrets kept by the cockpit",
        "in its arguments, and in files of mode 0600 beside the root",
        inside=("private file of the same user", "cockpit's cmdline"),
    ),
    Case(
        75,
        "Typing for the operator",
        "TIOCSTI, also with high bits, TIOCLINUX, TIOCSETD, TIOCCONS; /dev/tty",
        inside=(
            *("TIOCSTI", "TIOCSTI with high bits", "TIOCLINUX", "TIOCSETD", "TIOCCONS", "/dev/tty"),
            *("TIOCSTI on the cockpit's terminal",),
        ),
    ),
    Case(
        76,
        "Writing to terminals",
        "open the cockpit's terminal, any other, any console",
        inside=("the cockpit's terminal", "any terminal or console for writing"),
    ),
    Case(
        77,
        "Escape sequences in output",
        "OSC 0, 8, 52, 1337, DCS, APC, CSI 2J, ?1049l, ?1000h, C1 forms, reports, the end of a paste",
        "no such byte on the cockpit's terminal",
        tests=(
            "tests/widgets/test_terminal_recorded.py::test_the_real_terminal_hears_nothing_of_the_child",
            "tests/widgets/test_terminal_pane.py::test_nothing_of_the_childs_reaches_the_terminal",
            f"{_COCKPIT}test_the_output_of_a_command",
            f"{_STREAM}test_every_other_sequence_is_swallowed_whole",
            f"{_TEXT}test_what_a_terminal_would_obey_or_hide_is_gone",
        ),
    ),
    Case(
        78,
        "Text that deceives",
        "bidirectional marks, zero width, tag characters, a prompt in look-alike letters",
        "removed; look-alikes are plain text in a pane",
        tests=(
            f"{_TEXT}test_what_a_terminal_would_obey_or_hide_is_gone",
            f"{_TEXT}test_nothing_unsafe_is_left_and_cleaning_twice_changes_nothing",
            f"{_PANES}test_no_pane_lets_hostile_text_through",
        ),
    ),
    Case(
        79,
        "Markup",
        "[@click=app.quit], [link=...], [/] unbalanced",
        "shown as it stands, no action, no crash",
        tests=(
            f"{_PANES}test_a_click_on_hostile_text_runs_nothing",
            f"{_PANES}test_no_dialog_lets_hostile_text_act",
        ),
    ),
    Case(
        80,
        "The same from everywhere",
        "file names, contents, goals, steps, beliefs, errors, settings, thinkers' and tools' names",
        "the same",
        tests=(
            f"{_COCKPIT}test_the_content_and_the_name_of_a_file",
            f"{_COCKPIT}test_a_goal_and_what_planning_says_of_it",
            f"{_COCKPIT}test_goals_steps_and_beliefs_that_reach_the_engine_uncleaned",
            f"{_COCKPIT}test_the_intervention_dialog_over_a_hostile_step",
            f"{_COCKPIT}test_palette_and_help_with_hostile_settings",
            "tests/app/cli/test_cli.py::test_what_an_agent_was_told_reaches_the_terminal_clean",
        ),
        absent=("names of MCP tools: there are none yet", "git branch names: the cockpit shows none"),
    ),
    Case(
        81,
        "Odd streams",
        "overwriting by CR, a line of 10 MB, no line end ever, NULs, mixed encodings, 100,000 openings",
        "bounded, responsive",
        tests=(
            f"{_STREAM}test_control_characters_do_to_the_line_what_a_terminal_does",
            f"{_STREAM}test_a_line_without_end_is_capped",
            f"{_TEXT}test_a_hundred_thousand_openings_are_cleaned_in_time_that_grows_with_them",
            "tests/widgets/test_terminal_pane.py::test_ten_megabytes_leave_the_loop_free_and_the_end_right",
            f"{_PROCESS}test_output_comes_live_and_whole_characters",
        ),
    ),
    Case(
        82,
        "Endless output",
        "on both streams, to the hard limit",
        "capped, ended, head and tail kept",
        tests=(
            f"{_PROCESS}test_endless_output_is_ended_and_the_loop_stays_responsive",
            f"{_PROCESS}test_output_keeps_head_and_tail_and_counts_the_rest",
            f"{_PROCESS}test_both_streams_without_end_are_ended",
        ),
    ),
    Case(
        83,
        "Output that imitates the cockpit",
        "a dialog, the badge, cursor movement out of the pane",
        "cannot leave its pane",
        tests=(f"{_COCKPIT}test_output_that_imitates_the_cockpit_stays_in_its_pane",),
    ),
)
