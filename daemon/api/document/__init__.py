"""What the API says of itself: OpenAPI document, offline page, shapes, metrics as text."""
