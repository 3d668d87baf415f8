"""Commands about a machine: the line, decisions, its clock, the probe."""
