"""From MachineConfigs to nodes that run them.

* `defaults.py`: the built-in pools and the cluster-wide settings, if nobody made them.
* `generated.py`: configs that follow from KubeletConfigs and ContainerRuntimeConfigs.
* `render.py`: one config for each pool, or the reason why there is none.
* `rollout.py` with `pool_members.py`: which node goes next, and what the pool reports.
* `policies.py`: what a RolloutPolicy says about itself.
* `labels.py`: nodes that booted straight into a custom pool get its labels.
* `drain.py`: cordons and empties nodes that ask for it, and puts them back to work.
* `nodes.py`: a MachineConfigNode for every node.
* `prune.py`: rendered configs that nobody uses any more.
* `user_data.py`, `installer_pointers.py`: what new machines are created with, and what an installer left.
* `other_operators.py`: whether another operator does this work already.

All decisions are in `machineconfig`; times are in `timing.py`, because a simulation runs the same loops faster.
"""
