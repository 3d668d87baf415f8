"""The documentation site (`make docs`): Sphinx, the theme Furo, Markdown by MyST; nothing is loaded from a network."""

project = "mcfd"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mcfd"
html_copy_source = False
html_show_copyright = False
html_last_updated_fmt = None
myst_heading_anchors = 4
# `sudo` prompts and elided answers in examples are not of any language.
suppress_warnings = ["misc.highlighting_failure"]
