"""Documents for people: certified invoices and reports, laid out once and rendered as text, HTML or ESC/POS."""
