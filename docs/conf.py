"""Settings of the documentation site, which `./dev docs` builds with Sphinx.

The pages that Sphinx reads are staged by tools/dev/docs_pages.py: docs/*.md and generated ones.
"""

# SPDX-License-Identifier: Apache-2.0

project = "Treadle"
author = "the authors of Treadle"
project_copyright = f"{author}, Apache License 2.0"

extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".md": "markdown"}
# Plain Markdown plus `{directive}` fences; links to `page.md#heading` are resolved and checked.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
smartquotes = False
highlight_language = "default"
# Highlighting falls back to plain text; an annotation's short name may be that of several types.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]
add_module_names = False
toc_object_entries = False
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = "Treadle"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 1,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button-field"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "use_edit_page_button": False,
}
html_sidebars = {"index": []}
