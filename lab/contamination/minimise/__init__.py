"""Makes a contaminating scenario as small as it can be without losing its outcome."""
