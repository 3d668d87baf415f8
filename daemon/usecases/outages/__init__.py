"""The register of outages: kept by itself, read, and completed by who was notified."""
