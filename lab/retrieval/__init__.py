"""The retrieval benchmark: test sets, systems under test, embedders, metrics, audits, and the bench that joins them."""
