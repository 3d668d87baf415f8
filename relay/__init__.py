"""The relay: the API of every box of a chain at one address, over NATS."""
