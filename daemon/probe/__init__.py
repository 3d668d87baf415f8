"""First contact with a machine: each assumption compared with its answers."""
