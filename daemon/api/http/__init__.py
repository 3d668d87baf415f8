"""The edge: server, connections, framing, headers, streams. Knows no route and no key."""
