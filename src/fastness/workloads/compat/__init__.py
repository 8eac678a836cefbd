"""What goes together: releases, architectures, TEEs, GPUs and platforms, as the manual's two tables have it.

    judge.py    One combination against the tables: how well it is supported, and if not, which entry says no and what would help
    present.py  The combinations that a cluster has, by what its objects say
    tables.py   The compatibility tables of confidential containers 1.12, row by row

`fastness doctor` and `fastness enable` ask here, so that both say the same.
"""
