"""Tickets, enrolments and bootstrap tokens of a cluster."""
