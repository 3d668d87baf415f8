"""Screens of the shop's page, one file each."""
