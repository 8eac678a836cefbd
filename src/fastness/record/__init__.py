"""The append-only record of what was decided and released: entries, order, signed head, proofs, witnesses.

entry.py       A line of the record, the port of whoever keeps it, and what a line rests on, for people
order.py       Putting the batches of all doors into one order
signing.py     Whose a batch is: signed by the key of its door, under that door's name, and not of a time that is over
witnessing.py  Whether a witness cosigns a checkpoint (C2SP tlog-witness)
live/          The record of a cluster: its tiles, its head, its keys, its readers
loops/         Sequencing the record, and showing it to witnesses
door/          A witness of records: it runs elsewhere, for somebody else, and remembers how far each log has come
"""
