"""HTTP: where closures come in, and what programs ask."""
