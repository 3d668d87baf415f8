"""The machine adapter: bridge types to core types and back, and one line kept alive."""
