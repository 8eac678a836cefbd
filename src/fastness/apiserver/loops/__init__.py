"""What Kubernetes does itself: embedded mode only.

On a real API server kube-controller-manager runs these loops; starting ours there would be two hands on one wheel, so
`serve` never does. They look across all kinds through an `Inventory` that only the embedded store can give.

* `garbage.py`: objects whose owners are gone; orphan and foreground deletion.
* `namespaces.py`: the content of a namespace that is being deleted.
* `definitions.py`: the objects of a CustomResourceDefinition that is being deleted.
* `accounts.py`: the `default` service account and the root CA of every namespace.
* `budgets.py`: the status of disruption budgets.
* `roles.py`: the rules of aggregated cluster roles.
"""
