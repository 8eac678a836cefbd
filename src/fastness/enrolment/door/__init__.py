"""Enrolment: the door at which a new machine shows its ticket and proves its key.

`app.py` is the table of routes and thin handlers, `http.limits` bounds how often an address or a ticket may ask, `server.py`
opens and closes the door. The protocol is `enrolment.enrolment`, what it does to the cluster `enrolment.live.enrolments`.
"""
