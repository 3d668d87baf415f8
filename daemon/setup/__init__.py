"""From a box that knows nothing to a configuration: which machines are there, what to write, where tills find it."""
