"""A witness of records: it runs elsewhere, for somebody else, and remembers how far each log has come.

* `witness.py`: `POST /add-checkpoint`, the one thing that a witness does (C2SP tlog-witness).
* `witness_server.py`: key, memory and listener as one thing that can be opened and closed.
* The memory is `record.live.witness_memory`: one size and one root for each log, durable before a cosignature leaves.

What is refused is decided in `record.witnessing`. Nothing here knows a cluster.
"""
