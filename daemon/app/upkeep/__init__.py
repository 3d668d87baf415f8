"""What a running daemon does for its own box, time and again."""
