"""What goes wrong in the field, looked at one by one: one check a function, each says what it found and what to do about it."""
