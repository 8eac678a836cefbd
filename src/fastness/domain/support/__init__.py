"""What a support bundle holds and what it must not: redaction, layout, the index page. Pure; `cli/gather.py` does the asking."""
