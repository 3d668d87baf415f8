"""What looks by the clock instead of waiting for a closure, and who is told."""
