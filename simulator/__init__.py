"""A fiscal machine made of software: a second, independent reading of the protocol."""
