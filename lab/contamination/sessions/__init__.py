"""How a trial's sessions are started: cold, in a sandbox of their own, or warm, forked from an imported agent."""
