"""Pages for people: rendered on the server without scripts, French first."""
