"""Reports of a benchmark run: one file a form, all from the same results."""
