"""Enrolment: the door at which a new machine shows its ticket and proves its key.

    app.py     `/v1/enrol` for machines that join
    server.py  The door of enrolment as one thing that can be opened and closed

The protocol is `enrolment/enrolment.py`, what it does to the cluster `enrolment/live/enrolments.py`.
"""
