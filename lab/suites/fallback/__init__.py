"""Suite ``fallback``: whether a last-resort archive is asked when it must be, left alone otherwise, and cited truly."""
