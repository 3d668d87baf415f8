"""What a machine says of itself, and whether it agrees with an invoice."""
