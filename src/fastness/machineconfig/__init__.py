"""From MachineConfigs to what every machine of a pool should be, and how it gets there: pure decisions.

The modules follow the flow:

* `select` finds the configs of a pool and their order, `validate` judges each, `merge` folds them, `render` names the result,
  `blame` tells where each part came from, `reconcile` refuses what a running machine cannot follow.
* `diff` says what changes between two rendered configs, `disruption` what a machine must do about it, `kargs` how arguments are
  replaced.
* `nodes` reads a node, `rollout` chooses who goes next, `waves` holds back by policy, `status` reports, `prune` forgets.
* `plan` puts these together before anything happens: controllers, command line and page call it alike.
* `generated` (with `kubelet`, `containerruntime`) makes configs from other kinds; `pointer` is what a new machine boots with.

Nothing here reads a clock, a file or a cluster.
"""
