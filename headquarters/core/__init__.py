"""Rules of headquarters, without I/O: reception of messages, checks of a book's closures, late shops."""
