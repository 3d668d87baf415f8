"""From an empty box to a configuration."""
