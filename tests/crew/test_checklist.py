"""The sixty lines of the ontology's checklist (ontology spec §6): each has tests, which name its number."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOMS = ("agents", "selection", "mcp", "crew", "building", "widgets", "cockpit")
"""Where tests of the crew are; elsewhere "line" means other things."""
SHOWN: dict[str, dict[str, tuple[int, ...]]] = {
    "agents/test_methods.py": {
        "test_back_keeps_data_and_is_refused_at_the_first_step": (39,),
        "test_a_changed_answer_makes_exactly_its_dependants_stale": (39,),
        "test_a_required_step_says_why_it_stays_and_a_session_resumes": (40,),
        "test_a_failing_checkpoint_shows_measured_against_wanted_and_resume_skips_what_counts": (38,),
        "test_openings_are_blind_and_a_round_shows_nothing_of_itself": (26,),
        "test_a_rebuttal_of_nothing_is_sent_back_and_then_stands_as_none": (27,),
        "test_a_quote_that_is_not_in_its_source_is_unverified_and_lowers_the_confidence": (28,),
        "test_two_passes_that_differ_are_undecided": (29,),
        "test_the_judge_sees_no_names_and_the_same_text_in_both_orders": (30,),
        "test_new_claims_in_the_last_round_are_refused_and_a_round_without_change_is_the_last": (31,),
        "test_a_round_needs_a_turn_of_each_side": (32,),
        "test_the_verdict_is_computed": (36,),
        "test_a_reply_of_a_clarifier": (34,),
    },
    "agents/test_ontology.py": {
        "test_the_mean_is_ready_and_an_agent_that_requires_success_refuses": (1,),
        "test_admission_is_the_mean_over_what_is_required": (1,),
        "test_blank_words_are_unclear_and_scores_are_numbers_from_0_to_1": (2,),
        "test_the_worked_scores": (3,),
        "test_context_and_result_survive_json": (4,),
        "test_what_does_not_fit_is_refused_by_name": (5,),
        "test_success_is_the_absence_of_an_error": (6,),
        "test_what_a_model_did_not_say_is_empty": (7,),
        "test_a_spec_tells_everything_that_is_wrong_with_its_place": (8,),
    },
    "selection/test_graph_stores.py": {
        "test_the_script_for_neo4j_names_nothing_but_parameters": (53,),
    },
    "selection/test_selection_graph.py": {
        "test_the_worked_examples_come_out_in_both_policies": (57,),
        "test_changing_a_chains_weight_leaves_one_edge": (58,),
        "test_who_has_finished_is_not_selected_and_nothing_leads_to_larry": (58,),
        "test_a_trial_is_seen_through_itself_and_leaves_nothing": (53,),
    },
    "mcp/test_custom.py": {
        "test_a_module_that_prints_sleeps_or_ends_its_process_hurts_nobody": (45,),
    },
    "mcp/test_servers.py": {
        "test_what_can_come_of_a_call_is_told_apart": (44,),
        "test_what_an_agent_needs_of_servers_is_there_or_named": (52,),
    },
    "crew/runs/test_run_collaborative.py": {
        "test_one_optional_hat_fails_and_it_is_named_and_counted": (37,),
        "test_without_a_required_hat_there_is_no_quorum_and_no_synthesis": (37,),
        "test_a_delegation_waits_for_its_child_and_holds_no_leave_meanwhile": (9,),
    },
    "crew/runs/test_run_debate.py": {
        "test_openings_are_blind_and_the_calls_are_as_planned": (26, 30, 31),
        "test_a_quote_that_is_not_there_lowers_the_confidence": (28,),
        "test_a_judge_that_turns_with_the_order_decides_nothing": (29,),
        "test_a_rebuttal_of_no_claim_is_sent_back_once_and_then_stored_as_none": (27,),
        "test_a_side_that_fails_twice_leaves_no_verdict": (32,),
        "test_nothing_new_ends_it_early_and_a_judge_naming_what_fell_is_asked_again": (31,),
    },
    "crew/runs/test_run_guided.py": {
        "test_a_session_goes_forth_and_back_and_finishes_without_a_model": (39, 40),
    },
    "crew/runs/test_run_operator.py": {
        "test_a_handoff_is_an_ordinary_agent_whose_model_is_told_the_task_and_returns_once": (7,),
        "test_a_hard_criterion_that_fails_is_sent_back_alone_and_the_result_counts_after": (35,),
        "test_after_two_repairs_it_fails_with_the_output_kept": (35,),
        "test_numbers_are_computed_and_overwrite_what_the_model_wrote": (36,),
    },
    "crew/runs/test_run_pipeline.py": {
        "test_each_phase_is_checked_and_what_fails_shows_measured_against_wanted": (38,),
        "test_another_run_skips_what_is_committed_unless_the_phase_has_changed": (38,),
    },
    "crew/runs/test_run_role.py": {
        "test_a_reply_with_two_questions_gets_one_repair_and_then_is_flagged": (34,),
    },
    "crew/runs/test_run_worker.py": {
        "test_cancelling_ends_the_child_and_its_request_before_anything_else_runs": (13,),
    },
    "crew/runs/test_seed_api.py": {
        "test_an_agent_is_used_directly_and_by_a_handoff": (20,),
        "test_a_workflow_is_orchestrated": (20,),
    },
    "crew/runs/test_whole_debate.py": {
        "test_a_motion_is_argued_blind_and_judged_by_nobody_of_a_name": (26, 30, 31),
        "test_a_judge_that_turns_with_the_order_leaves_it_to_the_operator": (29, 32),
        "test_a_side_that_fails_twice_leaves_no_verdict": (32,),
        "test_a_reply_to_no_claim_is_sent_back_once": (27, 31),
    },
    "crew/runs/test_whole_manager.py": {
        "test_one_model_call_at_a_time_is_enough_for_three_levels": (9, 10),
        "test_a_child_ends_before_its_parent_and_a_question_stops_both_clocks": (11,),
        "test_what_was_streamed_when_the_time_was_over_is_kept": (12,),
        "test_a_cancelled_tree_leaves_no_task_no_process_and_no_question": (13,),
        "test_who_is_cancelled_in_a_group_is_reported_so": (14,),
        "test_after_kill_9_everything_stands_where_it_can_go_on": (19,),
    },
    "crew/runs/test_whole_modes.py": {
        "test_the_second_is_told_what_the_first_found_and_the_third_never_begins": (21,),
        "test_order_is_kept_under_random_delays_and_half_are_enough": (22,),
        "test_the_synthesis_names_all_and_passing_through_asks_nobody": (23,),
        "test_the_graph_selects_and_only_who_cannot_begin_is_followed_by_the_next": (24,),
        "test_a_gap_of_four_hundredths_asks_the_operator": (24,),
        "test_going_round_in_circles_is_planned_anew_once_and_then_the_operators": (25,),
    },
    "crew/runs/test_whole_types.py": {
        "test_the_floor_has_one_holder_whatever_happens_to_it": (33,),
        "test_larry_asks_one_question_and_recommends_nothing": (34,),
        "test_a_validation_is_counted_in_code_and_sent_back_twice_at_most": (35, 36),
        "test_an_opportunity_is_never_less_than_how_important_it_is": (36,),
        "test_five_hats_are_enough_and_white_is_not_missed": (37,),
        "test_research_says_what_fails_survives_a_restart_and_keeps_its_phases": (38,),
        "test_the_canvas_is_filled_over_a_restart": (39, 40),
        "test_without_a_model_each_does_what_can_be_computed_and_says_what_needs_one": (43,),
        "test_what_is_allowed_always_holds_for_runs_to_come_of_that_agent": (42,),
    },
    "crew/test_deadlines.py": {
        "test_a_child_ends_before_its_parent_and_waiting_stops_both_clocks": (11,),
        "test_a_timeout_keeps_what_was_said_and_waits_five_seconds_at_most": (12,),
        "test_cancelling_ends_what_is_below_first_and_leaves_nothing": (13,),
    },
    "crew/test_handoffs.py": {
        "test_a_limit_of_one_model_call_does_not_stop_three_levels": (9,),
        "test_a_cycle_and_a_seventh_agent_are_refused_before_they_run": (10,),
        "test_admission_asks_in_its_order_and_the_first_no_counts": (1,),
        "test_urgent_overtakes_and_waiting_is_not_overtaken_for_ever": (15,),
        "test_illegal_moves_raise_and_change_nothing": (16,),
        "test_a_second_result_is_dropped_and_another_agents_refused": (17,),
        "test_a_retry_is_a_new_handoff_and_the_old_one_stays": (18,),
    },
    "crew/test_modes.py": {
        "test_each_has_the_findings_of_those_before_and_a_failure_stops": (21,),
        "test_results_are_in_the_order_given_and_half_are_enough": (14, 22),
        "test_a_synthesis_names_every_source_and_passthrough_calls_no_model": (23,),
        "test_selection_falls_back_where_one_cannot_begin_and_asks_about_a_tie": (24,),
        "test_a_task_that_speaks_for_nobody_goes_to_larry": (58,),
        "test_the_graph_selects_by_what_was_registered_and_used": (58,),
        "test_iterating_stops_at_its_cap_and_in_circles": (25,),
    },
    "crew/test_recovery.py": {
        "test_after_a_kill_each_stands_where_it_can_go_on": (19,),
    },
    "crew/test_requests.py": {
        "test_an_expired_request_takes_its_default_or_stays_open": (41,),
        "test_always_holds_for_one_agent_and_one_tool_until_it_is_revoked": (42,),
        "test_the_operators_text_becomes_the_result": (43,),
        "test_the_floor_has_one_holder_and_comes_back_from_one_that_crashes": (33,),
    },
    "crew/test_views.py": {
        "test_a_selection_is_explained_by_the_graph_itself": (58,),
    },
    "building/test_builder.py": {
        "test_a_build_again_writes_nothing_and_a_failed_one_brings_the_former_version_back": (55,),
        "test_each_type_is_built_and_its_own_tests_pass": (49,),
    },
    "building/test_parts.py": {
        "test_a_required_server_that_is_down_fails_and_an_optional_one_is_degraded": (52,),
        "test_a_custom_function_is_looked_at_in_the_sandbox": (45,),
        "test_any_name_stands_in_the_graph_and_no_text_of_it_in_cypher": (53,),
        "test_the_generator_gives_the_same_bytes_and_no_text_of_the_skill_in_code": (49, 56),
    },
    "crew/test_builds.py": {
        "test_a_build_is_events_and_a_handoff_and_a_failed_proof_brings_the_former_version_back": (55,),
    },
    "building/test_skill.py": {
        "test_line_ends_of_old_yaml_are_letters": (46,),
        "test_strict_verdicts_are_those_of_the_reference": (46,),
        "test_the_recorded_verdicts_are_those_of_the_package": (46,),
        "test_heads_are_read_as_specified": (47,),
        "test_code_is_no_heading_and_a_section_holds_its_parts": (48,),
        "test_nothing_outside_the_folder_is_read": (51,),
        "test_the_type_is_told_from_what_the_skill_says": (50,),
        "test_a_type_that_cannot_be_told_is_flagged_and_never_guessed": (50,),
    },
    "building/test_trying.py": {
        "test_a_suite_that_shows_nothing_does_not_pass": (54,),
    },
    "widgets/test_crew_dialogs.py": {
        "test_every_state_is_a_word_and_nothing_is_cut_without_a_mark": (59,),
        "test_the_timeline_posts_only_what_can_be_asked_of_a_handoff": (59,),
    },
    "cockpit/test_cockpit_builder.py": {
        "test_a_build_asks_for_the_type_and_goes_on_with_what_is_chosen": (50, 59),
    },
    "cockpit/test_cockpit_crew.py": {
        "test_a_flood_of_events_leaves_keys_alone_and_the_board_true": (60,),
    },
    "cockpit/test_cockpit_debate.py": {
        "test_a_debate_is_followed_and_steered_between_its_rounds": (31, 59),
        "test_passes_that_differ_stand_side_by_side_and_wait_for_the_operator": (29,),
        "test_the_operators_verdict_stands_beside_the_judges": (32,),
    },
    "cockpit/test_cockpit_guided.py": {
        "test_a_session_goes_forth_and_back_by_key": (39, 40, 59),
    },
    "cockpit/test_cockpit_guided_in_tmux.py": {
        "test_the_keys_arrive_and_a_kill_loses_nothing": (40,),
    },
    "cockpit/test_cockpit_pipeline.py": {
        "test_a_checkpoint_shows_what_was_measured_and_is_mended_by_hand": (38, 59),
    },
}
"""The tests of each file beneath `tests`, and the lines that they show.

Tests of `crew/runs/test_whole_*` show them over a whole engine: manager, runs, journal, sandbox and a server
that speaks the Messages API. Those of `agents` show the machines alone, those beside them the manager alone.
"""
SAID = re.compile(r"\bLines? (\d+(?:(?:, | and )\d+)*)")


def shown_by() -> dict[int, list[str]]:
    """The tests of each line, as `file::test`."""
    found: dict[int, list[str]] = {}
    for file, tests in SHOWN.items():
        for test, numbers in tests.items():
            for number in numbers:
                found.setdefault(number, []).append(f"{file}::{test}")
    return found


@cache
def named_in(file: str) -> dict[str, set[int]]:
    """The lines that each test of a file names in its docstring."""
    body = ast.parse((TESTS / file).read_text(encoding="utf-8")).body
    return {
        one.name: {
            int(number)
            for listed in SAID.findall(ast.get_docstring(one) or "")
            for number in re.findall(r"\d+", listed)
        }
        for one in body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_line_has_tests_that_exist_and_name_it() -> None:
    shown = shown_by()
    assert sorted(shown) == list(range(1, 61))
    for number, tests in shown.items():
        for file, _, name in (test.partition("::") for test in tests):
            assert (TESTS / file).is_file(), f"{number}: {file} is gone"
            assert name in named_in(file), f"{number}: {file}::{name} is gone"
            assert number in named_in(file)[name], f"{number} is not named by {file}::{name}"


def test_every_test_that_names_a_line_is_in_the_table() -> None:
    files = [
        str(path.relative_to(TESTS)) for room in ROOMS for path in sorted((TESTS / room).rglob("test_*.py"))
    ]
    named = {
        (number, f"{file}::{name}")
        for file in files
        for name, numbers in named_in(file).items()
        if name.startswith("test_")
        for number in numbers
    }
    assert named == {(number, test) for number, tests in shown_by().items() for test in tests}
