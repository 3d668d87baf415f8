"""Layout, style and number formats of the pages of shop and headquarters."""
