"""From a rendered config to nodes that run it: who goes next, what holds it back, and who makes way.

    built_images.py     The images that were built for pools, as the rollout sees them
    drain.py            Drains: nodes ask by annotation, this loop cordons and empties them, and puts them back to work
    holds.py            What holds a node back: an image that nobody could prove, a machine that is not proved
    overlay_targets.py  Which overlays every node goes to, kept event by event
    overlays.py         NodeOverlays: whether each can be merged, how many machines get it, and whether those have it
    policies.py         The status of RolloutPolicies, kept by the rollout as it goes from pool to pool
    pool_members.py     Which node is in which pool, and how many are in which state, kept event by event
    rollout.py          The rollout of a pool: who goes next, and what the pool reports

Decisions are in `machineconfig/rollout` and `machineconfig/overlay`.
"""
