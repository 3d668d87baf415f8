"""Events and closures on their way to their receivers."""
