"""A report on one network: what it prefers before training, as one page."""

from nads_book.network_report.page import Report, report_on
