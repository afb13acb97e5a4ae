"""The report as one HTML file that needs no network and runs no script, and as a short one for notebooks."""

from meltpoint.report.html.notebook import log_prob_html, log_z_html, report_html
from meltpoint.report.html.page import render_page

__all__ = ["log_prob_html", "log_z_html", "render_page", "report_html"]
