"""The machine adapter: bridge types to core types, and the one line to it."""
