"""Forms of a run for other tools: one writer a module, all of them called through ``formats``."""
