"""What a request says: its body, its query, its idempotency key."""
