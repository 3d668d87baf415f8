"""Orders of a test to a running machine, over a socket or the keyboard."""
