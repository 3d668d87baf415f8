"""Headquarters: receives, checks and shows the closures of many boxes.

It knows boxes by `common.wire` alone: nothing here imports the daemon."""
