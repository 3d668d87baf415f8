"""A book of a shop: what its box has sent and said of it, and what was taken back. Its row is the lock under which all of that is kept."""
