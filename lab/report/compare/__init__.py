"""Writers of comparisons: terminal, HTML, Markdown, JSON."""
