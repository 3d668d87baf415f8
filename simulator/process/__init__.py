"""`mcf-simulator` as a program: options, state file, several machines."""
