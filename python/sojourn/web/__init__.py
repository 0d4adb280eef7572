"""Pages: single HTML files with data, styles and scripts, which need no server."""
