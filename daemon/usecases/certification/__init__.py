"""An invoice from its request to its outcome: exactly once."""
