"""Gates: thresholds on named numbers of a run, and the verdict by which a CI job passes or fails."""
