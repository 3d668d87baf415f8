"""The fiscal rules, without I/O."""
