"""Proportions with named denominators, intervals that respect nested repeats, paired comparisons."""
