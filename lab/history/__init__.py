"""The history of runs: every number of every run in one Parquet file, and its trend."""
