"""The report as one HTML file that needs no network and runs no script, and as a short one for notebooks."""

from meltpoint.results.html.notebook import report_html
from meltpoint.results.html.page import render_page

__all__ = ["render_page", "report_html"]
