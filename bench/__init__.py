"""How fast Fastness is, measured beside a real kube-apiserver with etcd.

`python -m bench` runs everything and prints a table; `python -m bench create list` runs some of it. The flow: `targets`
starts both servers, `cases` says what is done to them, `loadgen` does it from a small Go program, `accounting` reads what
it cost, `figures` condenses rounds, `report` prints and renders.

Rules, because the machine is never quiet:

* Ours and the peer take turns in short rounds, and every figure is the median of the rounds with its spread beside it.
* CPU time of all processes of a server stands beside every rate; ratios come from one run, never from two.
* Both keep what they acknowledge: fsync is on, here and in etcd.
"""
