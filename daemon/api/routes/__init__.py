"""The endpoints, one file for each group. They do not know each other."""
