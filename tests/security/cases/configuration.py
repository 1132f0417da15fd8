"""Cases 84 to 100: deputies and configuration, and what is left where a layer is missing."""

from __future__ import annotations

from tests.security.case import Case

_DEGRADES = "tests/engine/sandbox/test_jail_degrades.py::"
_DEPUTIES = "tests/engine/sandbox/test_deputies.py::"
_POLICY = "tests/engine/sandbox/test_policy.py::"
_CODER = "tests/engine/tools/test_simple_coder.py::"
_SECURITY = "tests/engine/sandbox/test_security.py::"

CASES = (
    Case(
        84,
        "A repository that runs programs",
        ".git/config with fsmonitor, hooksPath, sshCommand, filters, textconv",
        "never run by the cockpit",
        native=("a repository whose settings run programs",),
        tests=(f"{_DEPUTIES}test_only_the_sandbox_starts_programs",),
    ),
    Case(
        85,
        "Modules in the working directory",
        "json.py, os.py, sitecustomize.py, usercustomize.py, *.pth",
        "never loaded by cockpit or supervisor",
        native=("modules planted in the working directory",),
        tests=(f"{_DEPUTIES}test_a_cockpit_started_among_planted_modules_loads_none",),
    ),
    Case(
        86,
        "Programs planted on the PATH",
        "venv/bin/git, a python shim, directories of the agent first on the PATH",
        "the cockpit does not take them",
        native=("programs planted on the PATH",),
        tests=(f"{_CODER}test_an_active_venv_gives_python_and_pip_and_nothing_else",),
    ),
    Case(
        87,
        "Venvs that are none",
        "bin, settings or all of it outside; home elsewhere; a pipe, a shell, an own program for python",
        native=("a venv whose parts lie outside",),
        tests=(f"{_CODER}test_a_fake_venv_is_refused", f"{_CODER}test_a_venv_that_turned_fake_is_not_used"),
    ),
    Case(
        88,
        "Settings in the jail's HOME",
        "pip.conf, .netrc, .gitconfig, .npmrc",
        "of use only inside",
        native=("settings planted in the jail's HOME",),
        tests=(
            "tests/engine/sandbox/test_process.py::"
            "test_the_operators_pip_configuration_is_passed_on_without_credentials",
        ),
    ),
    Case(
        89,
        "Policy and journal",
        "write the journal, pilothouse.toml, a recipe; change the policy by the tool",
        inside=("change journal.db", "change pilothouse.toml", "change recipes/x.toml"),
        native=("an agent changes its policy",),
        tests=(
            f"{_POLICY}test_an_agent_reads_its_policy_and_has_no_way_to_change_it",
            f"{_POLICY}test_what_belongs_to_pilothouse_is_kept_from_commands_or_none_runs",
        ),
    ),
    Case(
        90,
        "A bwrap of the agent's",
        "first on the PATH, in the working directory, in a directory that others can write",
        "not used",
        native=("programs planted on the PATH",),
        tests=(f"{_DEGRADES}test_a_bwrap_that_others_could_have_written_is_not_used",),
    ),
    Case(
        91,
        "No bwrap, no user namespaces",
        "namespaces forbidden by a filter in front",
        "KERNEL, with the reason",
        tests=(f"{_DEGRADES}test_where_namespaces_are_forbidden_the_tier_is_kernel",),
    ),
    Case(
        92,
        "No Landlock",
        "ENOSYS, EPERM and EOPNOTSUPP by a filter in front",
        "no jail, with the reason",
        tests=(f"{_DEGRADES}test_without_landlock_no_jail_is_left_and_the_reason_is_told",),
    ),
    Case(
        93,
        "No seccomp",
        "EINVAL by a filter in front",
        "no jail, with the reason",
        tests=(f"{_DEGRADES}test_without_seccomp_there_is_no_jail",),
    ),
    Case(
        94,
        "No jail at all",
        "a policy that requires one",
        "nothing runs unless the operator accepted it",
        tests=(
            f"{_DEGRADES}test_a_policy_that_is_not_met_is_a_refusal_that_says_what_is_missing",
            f"{_DEGRADES}test_unconfined_is_given_only_where_the_operator_accepted_it",
            f"{_DEGRADES}test_without_a_jail_the_session_runs_nothing_and_says_why",
        ),
    ),
    Case(
        95,
        "A step that fails",
        "limits, Landlock, seccomp, supervisor, start",
        "125, the command does not run",
        tests=(
            f"{_DEGRADES}test_a_step_that_fails_means_125_and_the_command_does_not_run",
            f"{_SECURITY}test_limits_that_cannot_be_set_mean_125",
        ),
    ),
    Case(
        96,
        "Landlock newer or older than known",
        "versions 1 to 99 by their rights, 1 to 5 run",
        "works with the known rights",
        tests=(
            f"{_DEGRADES}test_a_landlock_version_has_the_rights_it_knows",
            f"{_DEGRADES}test_older_rulesets_still_hold_files",
            f"{_DEGRADES}test_ports_need_a_landlock_that_knows_them",
        ),
        absent=("kernels with another version: this one's is what it is; older rulesets were run on it",),
    ),
    Case(
        97,
        "Run by root",
        "capabilities in the jail; the note on processes",
        "no capability, the note is shown",
        inside=("a capability is held",),
        tests=(f"{_SECURITY}test_root_is_told_that_processes_are_counted_and_not_capped",),
    ),
    Case(
        98,
        "A rule on a missing path",
        "read_only names a path that is not there",
        "passed over",
        tests=(f"{_DEGRADES}test_a_rule_on_a_missing_path_is_passed_over",),
    ),
    Case(
        99,
        "An interpreter in HOME",
        "list the directory above the interpreter's prefix, and its neighbours",
        "only the prefix is readable",
        inside=("look above the interpreter",),
    ),
    Case(
        100,
        "signals taken over",
        "start where the terminal's signals are ignored or blocked",
        "a jailed program starts with default dispositions and an empty mask",
        tests=(
            "tests/engine/sandbox/test_signals.py::test_a_jailed_program_starts_with_default_dispositions_and_blocks_nothing",
        ),
    ),
)
