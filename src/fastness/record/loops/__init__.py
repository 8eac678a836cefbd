"""Sequencing the record, and showing it to witnesses."""
