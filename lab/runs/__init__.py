"""Runs: plan, lock, folder, and the runner that works a plan off and can go on after any interruption."""
