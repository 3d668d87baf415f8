"""Puts headquarters together: settings, what runs beside each other, start and stop."""
