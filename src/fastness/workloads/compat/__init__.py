"""What goes together: releases, architectures, TEEs, GPUs and platforms, as the manual's two tables have it.

    support.py       One combination against the tables: how well it is supported, or which entry says no
    combinations.py  The combinations that a cluster has, by what its objects say
    tables.py        The compatibility tables of confidential containers 1.12, row by row

`fastness doctor` and `fastness enable` ask here, so that both say the same.
"""
