"""HTTP: what a till may ask, and how it is answered."""
