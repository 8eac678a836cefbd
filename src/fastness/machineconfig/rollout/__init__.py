"""Who goes next, what it must do, what is reported.

nodes.py         A node as rollouts see it, and the pool that it belongs to
rollout.py       Who goes next: the budget of a pool and the nodes that may start now
built.py         The image that was built for a pool: how far its build is, and what nodes boot when it is done
image_mode.py    Image mode of the whole cluster: by which way a change reaches nodes, and which program deploys it there
image_queue.py   What a node booted, in order: which image, when, of which build, with which config and what that was made of
waves.py         RolloutPolicy: a change travels in waves, is watched, and stops by itself
status.py        What a pool reports: counts and conditions
wave_status.py   The wave that is under way, and whether it goes on, waits or has stopped
plan.py          What a change would do, before anything happens
overlay_plan.py  What a change of NodeOverlays would do, before anything happens
plan_json.py     A plan as JSON, for `-o json`, the page and the API: names are stable, absent means empty
diff.py          What changes between two rendered configs: every part, by name, with its content
disruption.py    What a machine must do after a change: the least that its policies allow
pinned_sets.py   Pinned images: which sets a node is to have, as its Node says it, and what a pool reports about its nodes
registries.py    Whether a change of registries.conf can be taken without moving pods away
assigned.py      Which rendered configs a machine may fetch: those that it was assigned, and never what its node says about itself
evictions.py     Which disruption budgets would hold up the drain of a node
try_for.py       How long a machine may try: `spec.tryFor` of a RolloutPolicy
"""
