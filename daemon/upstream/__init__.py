"""The ways out: HTTPS, NATS, webhooks, how each is signed."""
