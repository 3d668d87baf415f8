"""Certified sales of Tryton's point of sale (README.md)."""
