"""Systems under test behind one protocol: our fact store, the real plugin, and yardsticks."""
