"""Documentation site (`make docs`): Sphinx, theme Furo, Markdown by MyST; it loads nothing from a network."""

from sphinx.application import Sphinx

from daemon.settings.describe import render

project = "mcfd"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mcfd"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_last_updated_fmt = None
myst_heading_anchors = 4
# `sudo` prompts and elided answers in examples are not of any language.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_keys)


def _add_keys(_: Sphinx, page: str, source: list[str]) -> None:
    """Adds all keys to the site's configuration page; the file in the tree has only the common rules."""
    if page == "configuration":
        source[0] += "\n" + render()
