"""What is measured: shops with machines and tills, ledgers made in bulk."""
