"""The views: pure functions from what a user may see to markup.

    builds.py     Builds: the image of every pool on its way, all builds with their log, and which node boots what
    distrusts.py  What is no longer trusted: each Distrust with whom it hits
    evidence.py   The first difference in plain words, then every check, expected and seen side by side
    fleet.py      The fleet: how many machines are in which state, those that need a decision, and a page of all
    layout.py     What all pages share: head, navigation, banners
    login.py      The way in: a form for a token, or the confirmation of a one-time link; and pages that say no
    machine.py    One machine: where it stands and why, what fixes it, its evidence, its history, and what can be decided
    parts.py      The small parts that views are made of: badges, tables, times, commands, bars, differences
    plans.py      What changes, what each machine does about it, in which order, and what holds it up
    pools.py      Pools: how far each is, what it waits for, what is wrong, and the plan of a change that is under way
    record.py     The record: what was decided and released, in order, and the proof of one entry
    runtimes.py   Runtimes: how far the installation is, which nodes have it and which classes there are
    simulator.py  The simulator: virtual machines, what can go wrong with them, and the way back
    trust.py      What this cluster trusts: images and their values, policies with their cases, what is distrusted

Each is named after what it shows. None of them reads a cache, a clock or a request: `page/views` hands in what they need.
"""
