"""What goes over a line, written down with everything private masked."""
