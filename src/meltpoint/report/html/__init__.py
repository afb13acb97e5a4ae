"""The report as one HTML file that needs no network and runs no script, and as a short one for notebooks."""

from meltpoint.report.html.notebook import report_html
from meltpoint.report.html.page import render_page

__all__ = ["render_page", "report_html"]
