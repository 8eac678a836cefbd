"""Sequencing the record, and showing it to witnesses.

cluster_condition.py  One condition of the ConfidentialCluster, written by the loop that knows it
sequencer.py          The sequencer: batches of all doors become one record with a signed head
witnesses.py          Witnesses of the record: the newest checkpoint is shown to each, and their lines are kept beside it
"""
