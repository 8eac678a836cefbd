"""What goes together: releases, architectures, TEEs, GPUs and platforms, as the manual's two tables have it.

    tables.py    the tables, as data
    judge.py     one combination: how well it is supported, and if it is not, why and what would be
    present.py   the combinations that a cluster has

`fastness doctor` and `fastness enable` ask here, so that both say the same.
"""
