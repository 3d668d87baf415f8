"""Delivery: HTTPS, NATS, webhooks, signatures."""
