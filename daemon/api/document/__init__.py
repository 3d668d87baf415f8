"""The OpenAPI document and its offline page, how a route describes itself, metrics as text."""
