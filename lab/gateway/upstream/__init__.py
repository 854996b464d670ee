"""Forwarding to live models: from the agent's request to a real server and back, or a stated reason why not."""
