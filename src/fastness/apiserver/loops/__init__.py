"""What Kubernetes does itself: embedded mode only.

    accounts.py     Every namespace has a `default` service account and the API's root CA in `kube-root-ca.crt`
    budgets.py      The status of disruption budgets, so that `kubectl get pdb` and drains tell how many pods may go
    controllers.py  All loops of this package, ready to run
    definitions.py  A deleted CustomResourceDefinition takes its objects with it
    expiry.py       Events end after an hour, as on an API server with its usual settings
    garbage.py      Garbage collection: what happens to objects when their owners go
    inventory.py    The port that these loops have to the store: every kind at once
    namespaces.py   Namespace lifecycle: a namespace goes when everything in it has gone
    roles.py        Aggregated cluster roles: `admin`, `edit` and `view` have the rules of every role that their selectors pick
    signing.py      The signer of kubelets' certificates, for the embedded API

On a real API server kube-controller-manager runs these loops; starting ours there would be two hands on one wheel, so
`serve` never does. They look across all kinds through an `Inventory` that only the embedded store can give.
"""
