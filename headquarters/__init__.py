"""Headquarters: receives the closures of many boxes, checks and keeps them, finds what is missing, asks for it again, shows it.

It knows boxes by `common.wire` alone: nothing here imports the daemon."""
