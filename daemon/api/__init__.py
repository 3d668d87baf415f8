"""HTTP: the API and the shop's page."""
