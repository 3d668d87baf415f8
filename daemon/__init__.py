"""The service on the box beside the fiscal machine."""
