"""The sealed judge: whether a candidate is better, decided where the candidate can neither read nor write.

Two trees, a proposal and a suite enter; a `Verdict` leaves. Source: steering spec §3 idea 13.
"""
