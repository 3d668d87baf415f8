"""Passwords, limits of logins, sessions, CSV cells of box and headquarters.

It imports neither."""
