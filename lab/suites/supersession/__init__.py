"""Suite *time and supersession*: does a memory tell what was true then, by what was known then."""
