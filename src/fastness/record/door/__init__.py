"""A witness of records: it runs elsewhere, for somebody else, and remembers how far each log has come.

    witness.py         `POST /add-checkpoint`: cosign what continues the last tree of a log, and nothing else
    witness_server.py  A witness as one thing that can be opened and closed: its directory, its key, its listener

What is refused is decided in `record/witnessing.py`, what is remembered lies in `record/live/witness_memory.py`. Nothing here
knows a cluster.
"""
