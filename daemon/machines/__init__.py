"""The machine adapter: bridge types to core types, and one line kept alive."""
