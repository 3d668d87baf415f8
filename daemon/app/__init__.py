"""The composition root: the only room that sees everything."""
