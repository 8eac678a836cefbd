"""The record of a cluster: its tiles, its head, its keys, its readers.

backup_tiles.py     The record in a backup: every tile of one size, checked against the head that the store holds
door_keys.py        The keys with which doors sign their batches of the record, and who is a door
epoch.py            The record goes on under a new name when a person says so
guard.py            Nothing is signed that does not continue what was signed before, wherever that is still known
head.py             How far the record has come: one ConfigMap, changed only under the condition that nobody else did
health.py           Whether the record can be read and extended, for readiness
log.py              The record over tiles: append at the end, read anything, prove anything
log_key.py          The keys that sign the record's checkpoints: one signs, older ones stay known
reader.py           The record as readers have it: at its newest signed checkpoint
record.py           A door's side of the record: an entry is durable before what it describes may happen
tiles.py            Where the tiles of the record lie: files of the state directory, or ConfigMaps of the cluster
unauthenticated.py  Refusals of callers who proved nothing: on the record, and unable to fill it
witness_memory.py   What a witness keeps on its disk: its key, and for each log the last tree that it cosigned
witnesses.py        Asking witnesses for their cosignatures (C2SP tlog-witness, the side of the log)
"""
