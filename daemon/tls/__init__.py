"""The box's own authority and its certificate."""
