"""Around the routes: headers, streams, other origins, the last resort. Knows no route and no key."""
