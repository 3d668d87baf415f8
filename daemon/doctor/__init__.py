"""Checks of everything that fails in the field, one function each."""
