"""Events and closures on their way to those who asked for them."""
