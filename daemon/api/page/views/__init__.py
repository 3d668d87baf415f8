"""Values of screens (words, colours, pictures), computed before the template."""
