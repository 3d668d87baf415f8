"""Relay: one HTTP address for the APIs of all boxes of a chain, reached over NATS."""
