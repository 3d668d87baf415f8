"""Sales that are certified later: taken on, certified in their order, taken back."""
