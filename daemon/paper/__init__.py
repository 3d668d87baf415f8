"""Invoices and reports as text, HTML, PDF or ESC/POS."""
