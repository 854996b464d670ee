"""Makes complete scenarios of payload files: reading, dealing out hosts, composing, writing."""
