"""Enrolment: the door at which a new machine shows its ticket and proves its key.

    app.py     `/v1/enrol` for machines that join
    pace.py    How often machines may come to enrol: what the door of enrolment is told by whoever starts it
    server.py  The door of enrolment as one thing that can be opened and closed

The protocol is `enrolment/enrolment.py`, what it does to the cluster `enrolment/live/enrolments.py`.
"""
