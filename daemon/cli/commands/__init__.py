"""The commands of `mcfd`, one module each."""
