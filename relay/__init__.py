"""The relay: the API of every box of a fleet at one address, passed on over NATS and answered by the box (docs/anywhere.md)."""
