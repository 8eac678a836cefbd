"""The config server: the door at which a booting machine asks for its configuration.

`app.py` answers `/config/<pool>`; `release.live.replies` keeps the bytes of every (pool, rendered config, version), made once.
Who may ask follows from the pool's trust model: a machine of an ordinary pool shows a join ticket when it boots, and the
certificate of its node from then on (`release.live.day_two_nodes`; `day_two.py` signs what it gets and puts it on the record).
A confidential pool is served to nobody here, because its machines come through the gate.
"""
