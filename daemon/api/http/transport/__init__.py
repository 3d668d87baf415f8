"""What lies below HTTP: how a connection is taken, read and written."""
