"""What moved on the lines, on disk: a ring of the last megabytes, and the incidents; for people to read, and to be sent."""
