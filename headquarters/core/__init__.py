"""What headquarters decides, without I/O: whether a message is a closure, what a book's closures say of each other, who is late."""
