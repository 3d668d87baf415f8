"""`python -m bench.fleet`: thousands of boxes send to headquarters."""
