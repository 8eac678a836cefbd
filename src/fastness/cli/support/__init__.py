"""What a support bundle holds and what it must not: redaction, layout, the index page. Pure; `cli/support/gather.py` does the
asking."""
