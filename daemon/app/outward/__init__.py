"""What leaves the box: closures, webhooks, presence, events."""
