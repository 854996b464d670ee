"""The report of the suites beyond top-k: HTML, Markdown, terminal."""
