"""Questions that the journal answers: why something is so, what stands on it, what an agent waits for, and
whether it keeps to its plan.

What may enter: recorded events and folded states. What leaves: chains of events and small values; the words
of an event are for others. Nothing here records, decides or asks a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import late

if TYPE_CHECKING:
    from engine.inquiry.changed_files import touched_files
    from engine.inquiry.doubt import doubted, standing_alone
    from engine.inquiry.drift import Course, CourseKind, Revision, course_of, revisions
    from engine.inquiry.dry_run import DryAnswer, DryResult, DryRun, DryStop, dry_run_of
    from engine.inquiry.evidence import Evidence, Shown, evidence_of
    from engine.inquiry.inbox import (
        SYSTEM,
        WORKSPACE,
        Need,
        NeedKind,
        in_order,
        need_of_crew,
        need_of_server,
        needs_of,
        needs_of_system,
        question_text,
    )
    from engine.inquiry.kept import record_of
    from engine.inquiry.naming import Basis, Relation
    from engine.inquiry.plan_difference import Changed, Moved, PlanDifference, difference
    from engine.inquiry.record import Record, Subject, UnknownSubjectError
    from engine.inquiry.waiting import Waiting, WaitKind, in_particular, waiting_for, waiting_now
    from engine.inquiry.why import Cascade, Chain, Link, Standing, backward, cascade, forward
else:
    __getattr__ = late(
        __name__,
        {
            "drift": ("Course", "CourseKind", "Revision", "course_of", "revisions"),
            "dry_run": ("DryAnswer", "DryResult", "DryRun", "DryStop", "dry_run_of"),
            "evidence": ("Evidence", "Shown", "evidence_of"),
            "inbox": (
                "SYSTEM",
                "WORKSPACE",
                "Need",
                "NeedKind",
                "in_order",
                "need_of_crew",
                "need_of_server",
                "needs_of",
                "needs_of_system",
                "question_text",
            ),
            "kept": ("record_of",),
            "naming": ("Basis", "Relation"),
            "plan_difference": ("Changed", "Moved", "PlanDifference", "difference"),
            "record": ("Record", "Subject", "UnknownSubjectError"),
            "changed_files": ("touched_files",),
            "doubt": ("doubted", "standing_alone"),
            "waiting": ("WaitKind", "Waiting", "in_particular", "waiting_for", "waiting_now"),
            "why": ("Cascade", "Chain", "Link", "Standing", "backward", "cascade", "forward"),
        },
    )

__all__ = [
    "SYSTEM",
    "WORKSPACE",
    "Basis",
    "Cascade",
    "Chain",
    "Changed",
    "Course",
    "CourseKind",
    "DryAnswer",
    "DryResult",
    "DryRun",
    "DryStop",
    "Evidence",
    "Link",
    "Moved",
    "Need",
    "NeedKind",
    "PlanDifference",
    "Record",
    "Relation",
    "Revision",
    "Shown",
    "Standing",
    "Subject",
    "UnknownSubjectError",
    "WaitKind",
    "Waiting",
    "backward",
    "cascade",
    "course_of",
    "difference",
    "doubted",
    "dry_run_of",
    "evidence_of",
    "forward",
    "in_order",
    "in_particular",
    "need_of_crew",
    "need_of_server",
    "needs_of",
    "needs_of_system",
    "question_text",
    "record_of",
    "revisions",
    "standing_alone",
    "touched_files",
    "waiting_for",
    "waiting_now",
]
