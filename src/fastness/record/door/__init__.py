"""A witness of records: it runs elsewhere, for somebody else, and remembers how far each log has come.

* `app.py`: `POST /add-checkpoint`, the one thing that a witness does (C2SP tlog-witness).
* `memory.py`: one size and one root for each log, durable before a cosignature leaves.
* `server.py`: key, memory and listener as one thing that can be opened and closed.

What is refused is decided in `record.witnessing`. Nothing here knows a cluster.
"""
