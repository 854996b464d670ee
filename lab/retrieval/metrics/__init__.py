"""Metrics over rankings: first relevant ranks, scores with intervals, invariants, baselines, noise, comparisons.

Rankings are compared by the rank of their first relevant hit alone. All measures of a class are then functions of ten
counts and the number of its topics (``ranks.RankCounts``), and can be computed, checked and recomputed exactly.
"""
