"""The 72 behaviours of mindX's spec §7: each has tests, which name its number."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

TESTS = Path(__file__).parent.parent
SHOWN: dict[str, dict[str, tuple[int, ...]]] = {
    "app/test_grammar.py": {
        "test_a_line_means_one_command": (1, 2, 8),
        "test_what_means_nothing_is_answered_in_one_line": (60,),
    },
    "app/test_mastermind_verbs.py": {
        "test_a_missing_argument_is_answered_by_one_line_of_usage": (3,),
        "test_the_nearest_verbs_are_suggested": (5,),
        "test_help_and_dispatch_come_from_one_table": (6,),
        "test_no_mark_of_success_stands_where_there_is_none": (14,),
    },
    "app/test_headless.py": {
        "test_a_run_out_of_loops_is_timed_out_and_goes_on_with_the_same_plan": (16,),
        "test_a_model_that_never_gives_a_plan_ends_as_failed_planning": (30,),
    },
    "app/test_doctor.py": {
        "test_how_often_a_model_may_repair_is_a_setting": (30,),
    },
    "mastermind/spine/test_spine_jobs.py": {
        "test_a_job_that_breaks_leaves_an_id_and_the_log_has_its_traceback": (4,),
        "test_another_command_is_taken_while_a_job_runs_and_cancel_ends_its_processes": (12,),
        "test_work_in_a_thread_learns_that_it_is_cancelled": (12,),
    },
    "app/test_mastermind_doing.py": {
        "test_a_fault_of_the_program_is_told_under_an_id": (4,),
        "test_what_is_refused_or_fails_bears_no_mark_of_success": (4, 14),
        "test_json_in_single_quotes_is_the_same_configuration": (7,),
        "test_a_unique_beginning_of_an_id_is_enough_and_an_ambiguous_one_changes_nothing": (11,),
        "test_identities_are_made_used_and_given_up_only_when_it_is_sure": (13,),
        "test_a_preview_shows_what_is_understood_and_changes_nothing": (33,),
        "test_two_close_readings_are_asked_about": (36,),
    },
    "cockpit/test_cockpit_mastermind.py": {
        "test_a_command_that_raises_leaves_the_cockpit_alive_with_an_id": (4,),
        "test_a_long_command_leaves_the_bar_free_and_is_cancelled_by_key": (12,),
    },
    "mastermind/test_agents_creating.py": {
        "test_json_is_the_same_with_and_without_single_quotes": (7,),
        "test_extra_blanks_count_for_nothing": (8,),
        "test_an_id_outside_the_pattern_is_refused_before_any_effect": (9,),
        "test_there_are_24_stop_words": (9,),
        "test_a_json_list_is_refused": (10,),
        "test_an_unknown_type_lists_the_types_and_leaves_nothing": (71,),
        "test_a_core_agent_is_not_deleted": (72,),
        "test_a_running_agent_is_deleted_with_its_processes_and_its_history_stays": (72,),
    },
    "mastermind/spine/test_backlog.py": {
        "test_a_unique_prefix_names_an_item_and_an_ambiguous_one_lists_candidates": (11,),
        "test_similar_suggestions_are_one_item_with_the_higher_priority": (64,),
        "test_the_backlog_does_not_grow_when_no_audit_can_be_made": (65,),
        "test_a_critical_target_waits_while_other_work_goes_on_and_is_decided_once": (66,),
    },
    "mastermind/test_code_reading.py": {
        "test_an_analysis_is_cancelled_at_once_and_leaves_no_process": (12,),
        "test_changes_come_from_git_and_nothing_of_the_tree_is_run": (51,),
    },
    "mastermind/test_agents_identities.py": {
        "test_a_signature_is_verified_by_the_listed_address": (13,),
    },
    "engine/test_model_at_the_helm.py": {
        "test_a_model_plans_and_everything_of_the_call_is_in_the_journal": (15,),
    },
    "engine/test_pausing.py": {
        "test_max_loops_counts_from_each_run_whenever_it_comes": (16,),
        "test_each_step_runs_exactly_one_action": (24,),
    },
    "engine/test_recovery.py": {
        "test_handing_back_tries_the_failed_step_again": (17,),
        "test_a_failing_last_step_waits_for_the_operator_and_never_spins": (17, 49),
        "test_a_tool_that_breaks_its_contract_is_a_failure_never_a_success": (32,),
        "test_each_error_code_has_exactly_one_kind": (40,),
        "test_outcomes_1_1_0_give_a_rate_of_0_5285_that_survives_a_restart": (45,),
        "test_a_retry_that_succeeds_settles_its_failures": (46,),
        "test_nothing_outside_the_sandbox_is_reached_and_the_operator_is_asked": (47,),
        "test_never_ask_fails_the_goal_with_the_reason_and_others_go_on": (48,),
    },
    "engine/test_plan_edits.py": {
        "test_a_reworded_goal_is_planned_anew_and_a_more_urgent_one_goes_first": (18,),
        "test_an_edited_step_at_the_gate_never_starts_as_it_was": (25,),
        "test_unknown_ids_and_invalid_arguments_are_refused_in_words": (25,),
    },
    "mastermind/spine/test_campaign.py": {
        "test_a_campaign_that_was_left_is_no_part_of_the_next": (19,),
        "test_a_directive_is_resolved_with_its_rule_and_two_close_readings_are_asked": (33, 36, 39),
        "test_a_candidate_that_touches_undeclared_files_is_blocked": (68,),
        "test_nothing_better_is_a_plain_answer": (70,),
    },
    "engine/test_subgoals.py": {
        "test_a_sub_goal_completes_the_step_that_waits_for_it": (20,),
        "test_a_sub_goal_that_fails_reaches_the_operator_or_fails_the_whole": (20,),
    },
    "engine/test_beliefs_held.py": {
        "test_a_belief_with_a_time_is_gone_from_questions_and_prompts_after_it": (21,),
        "test_a_guess_does_not_replace_what_was_seen_or_told_and_both_are_on_record": (22,),
    },
    "engine/test_checklist_shutdown.py": {
        "test_after_a_crash_between_write_and_commit_the_state_before_it_loads": (23,),
    },
    "engine/test_plan_notation.py": {
        "test_what_is_no_plan_is_refused_with_place_and_reason": (26, 27, 28),
        "test_the_seeds_own_plan_is_refused_with_what_to_do": (27,),
        "test_a_call_that_cannot_be_made_is_refused_with_the_steps_number": (28,),
    },
    "thinkers/test_claude.py": {
        "test_a_wrong_plan_is_refused_the_next_prompt_says_why_and_it_is_put_right": (29,),
        "test_a_plan_that_is_never_right_has_failed_after_so_many_repairs": (30,),
        "test_a_model_without_tools_plans_in_words": (31,),
    },
    "engine/test_seed_workflow.py": {
        "test_a_model_that_is_never_right_runs_nothing": (30,),
    },
    "parameters/test_parameter_paths.py": {
        "test_the_seeds_own_example_finds_the_file_of_the_component": (33,),
        "test_a_placeholder_is_replaced_by_the_one_file_of_the_name": (34,),
        "test_a_placeholder_without_a_file_is_asked_about": (34,),
        "test_both_components_of_a_goal_are_found_and_the_unknown_one_is_told": (36,),
        "test_with_path_correction_off_nothing_is_looked_up": (38,),
    },
    "parameters/test_parameter_values.py": {
        "test_the_content_of_a_file_is_never_touched": (35,),
        "test_a_stage_that_is_off_is_skipped_and_says_so": (38,),
        "test_without_defaults_what_was_left_out_is_missing_and_the_stage_says_so": (38,),
        "test_every_stage_has_its_record_in_order": (39,),
    },
    "parameters/test_parameter_extraction.py": {
        "test_a_wrong_answer_goes_back_with_the_validators_words_and_is_repaired": (37,),
        "test_one_question_at_temperature_0_gives_the_missing_values": (37,),
        "test_when_a_model_finds_nothing_the_operator_is_told_what_is_missing": (37,),
        "test_with_extraction_off_no_model_is_asked": (38,),
    },
    "engine/test_settling.py": {
        "test_the_plan_and_the_lines_show_what_was_corrected_and_why": (39,),
    },
    "engine/test_failure_kinds.py": {
        "test_the_type_of_an_exception_goes_before_its_words": (40,),
        "test_nothing_stands_for_a_call_that_would_mean_something_else": (42,),
        "test_only_a_tool_that_has_the_command_and_takes_the_arguments_stands_for_one_that_is_gone": (42,),
        "test_whatever_was_learned_every_strategy_is_reached_and_the_ladder_ends": (44,),
    },
    "engine/test_checklist_retries.py": {
        "test_what_does_no_harm_twice_is_tried_three_times_with_growing_waits": (41,),
        "test_with_more_errors_allowed_the_table_of_strategies_ends_retrying": (41,),
    },
    "engine/test_recovery_strategies.py": {
        "test_when_the_other_call_fails_too_the_operator_is_asked": (42,),
        "test_what_asking_again_would_not_mend_goes_to_the_operator_at_once": (42, 47),
        "test_the_rest_of_a_goal_is_planned_anew_with_what_went_wrong_in_the_request": (43,),
        "test_a_goal_that_is_given_up_leaves_a_belief_that_says_why": (48,),
    },
    "reasoner/test_gate.py": {
        "test_a_wish_for_autonomous_mode_is_put_to_the_operator": (58,),
    },
    "sandbox/test_security.py": {
        "test_the_file_commands_withstand_every_attack": (50,),
        "test_nothing_gets_out_but_what_kernel_cannot_hide": (51, 52, 53),
    },
    "sandbox/test_files_stay_beneath_the_root.py": {
        "test_a_concurrent_symlink_swapper_gains_nothing": (50,),
        "test_a_file_with_a_second_hard_link_is_not_written": (50,),
        "test_a_file_with_a_name_outside_is_not_read_searched_copied_or_moved": (50,),
        "test_a_file_whose_names_all_lie_beneath_the_root_is_read": (50,),
        "test_a_name_that_is_moved_while_names_are_counted_counts_once": (50,),
        "test_a_link_that_leads_outside_is_refused": (50,),
        "test_a_path_that_leaves_the_root_is_outside_root": (50,),
    },
    "mastermind/test_code_sample.py": {
        "test_a_box_tells_what_ended_early_and_keeps_the_host_out_of_reach": (51,),
    },
    "sandbox/test_process.py": {
        "test_a_child_of_this_very_process_does_not_see_its_environment": (52,),
        "test_no_secret_of_the_cockpit_reaches_a_child": (52,),
        "test_run_kills_the_whole_tree_after_the_limit": (54,),
        "test_a_tree_over_its_memory_is_ended": (55,),
        "test_endless_output_is_ended_and_the_loop_stays_responsive": (55,),
        "test_a_child_has_no_terminal_and_no_inherited_descriptor": (62,),
        "test_a_child_that_reads_standard_input_gets_its_end": (62,),
    },
    "sandbox/test_seccomp_filter.py": {
        "test_sockets_follow_the_network": (53,),
    },
    "tools/test_simple_coder.py": {
        "test_a_program_over_its_time_is_failure_with_timeout": (54,),
        "test_endless_output_is_cut_and_says_so": (55, 56),
        "test_a_failing_program_is_failure_with_both_streams": (56,),
        "test_a_fake_venv_is_refused": (57,),
        "test_an_active_venv_gives_python_and_pip_and_nothing_else": (57,),
        "test_deactivate_restores_the_host_python": (57,),
        "test_nobody_but_the_operator_switches_autonomous_mode": (58,),
        "test_rm_needs_autonomous_mode": (58,),
        "test_what_came_to_be_behind_the_gates_back_is_not_replaced": (58,),
    },
    "sandbox/test_jail_limits.py": {
        "test_a_full_sandbox_ends_the_command": (55,),
    },
    "sandbox/test_jail.py": {
        "test_a_fork_bomb_dies_with_its_command": (55,),
    },
    "engine/test_approvals.py": {
        "test_what_changes_is_asked_once_its_arguments_are_settled_and_before_it_is_saved": (58,),
    },
    "engine/test_overwriting.py": {
        "test_to_replace_what_others_wrote_waits_for_the_operator": (58,),
        "test_a_denied_replacement_leaves_the_file_and_its_step_fails": (58,),
        "test_with_nobody_to_ask_nothing_is_replaced": (58,),
        "test_what_destroys_nothing_of_others_is_not_asked_about": (58,),
        "test_what_was_changed_since_the_agent_wrote_it_is_not_its_own_any_more": (58,),
        "test_autonomous_mode_or_a_rule_of_the_operators_lets_it_be_replaced": (58,),
        "test_an_agents_toggle_is_a_request_and_only_this_answer_counts": (58,),
        "test_with_nobody_to_ask_a_toggle_has_no_effect": (58,),
    },
    "engine/test_one_dispatcher.py": {
        "test_a_program_answers_the_same_from_a_plan_the_operator_and_the_shell": (59,),
    },
    "tools/test_coder_shell.py": {
        "test_an_unbalanced_quote_is_an_error_and_the_session_goes_on": (60,),
        "test_what_a_program_prints_is_inert": (61,),
    },
    "cockpit/test_cockpit_hostile_text.py": {
        "test_the_output_of_a_command": (61,),
    },
    "sandbox/test_jail_degrades.py": {
        "test_a_policy_that_is_not_met_is_a_refusal_that_says_what_is_missing": (63,),
        "test_without_a_jail_the_session_runs_nothing_and_says_why": (63,),
    },
    "mastermind/spine/test_applying.py": {
        "test_what_changed_since_the_difference_was_shown_is_not_applied_and_asked_again": (67,),
        "test_what_fails_its_validation_is_taken_back_to_the_hash": (69,),
    },
    "mastermind/test_judge.py": {
        "test_what_a_candidate_may_not_change": (68,),
    },
    "mastermind/test_sample_campaign.py": {
        "test_a_good_project_is_left_as_it_is": (70,),
    },
    "mastermind/test_parts_prompts.py": {
        "test_without_a_model_nothing_is_shown_of_a_prompt_and_that_is_said": (70,),
    },
    "mastermind/test_search_audit.py": {
        "test_nothing_to_find_is_a_plain_answer": (70,),
    },
}
"""The tests of each file beneath `tests`, and the numbers of what they show."""
SAID = re.compile(r"[Bb]ehaviours? (\d+(?:(?:, | and )\d+)*)")


def shown_by() -> dict[int, list[str]]:
    """The tests of each number, as `file::test`."""
    found: dict[int, list[str]] = {}
    for file, tests in SHOWN.items():
        for test, numbers in tests.items():
            for number in numbers:
                found.setdefault(number, []).append(f"{file}::{test}")
    return found


@cache
def said_by(file: str) -> dict[str, str]:
    """What each test of a file says of itself: its docstring, and the words below lists it is run over."""
    body = ast.parse((TESTS / file).read_text(encoding="utf-8")).body
    below: dict[str, str] = {}
    for one, words in pairwise(body):
        match one, words:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(said))):
                below[name] = said
    tests = [one for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {one.name: " ".join([ast.get_docstring(one) or "", *_over(one, below)]) for one in tests}


def _over(test: ast.FunctionDef | ast.AsyncFunctionDef, below: dict[str, str]) -> list[str]:
    names = (node for one in test.decorator_list for node in ast.walk(one) if isinstance(node, ast.Name))
    return [below[name.id] for name in names if name.id in below]


def numbers_in(words: str) -> set[int]:
    """The behaviours that are named."""
    return {int(number) for listed in SAID.findall(words) for number in re.findall(r"\d+", listed)}


def test_every_behaviour_has_tests_that_exist_and_name_it() -> None:
    shown = shown_by()
    assert sorted(shown) == list(range(1, 73))
    for number, tests in shown.items():
        for test in tests:
            file, _, name = test.partition("::")
            assert (TESTS / file).is_file(), f"{number}: {file} is gone"
            assert name in said_by(file), f"{number}: {test} is gone"
            assert number in numbers_in(said_by(file)[name]), f"{number} is not named by {test}"


def test_every_test_that_names_a_behaviour_is_in_the_table() -> None:
    files = sorted(str(path.relative_to(TESTS)) for path in TESTS.rglob("test_*.py"))
    named = {
        (number, f"{file}::{name}")
        for file in files
        for name, words in said_by(file).items()
        if name.startswith("test_")
        for number in numbers_in(words)
    }
    assert named == {(number, test) for number, tests in shown_by().items() for test in tests}
