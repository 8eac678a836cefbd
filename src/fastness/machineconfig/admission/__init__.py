"""Rules about machine configuration.

evictions.py      Who turns `pools[].evict` on is told first which pods would go
machineconfig.py  Rules about machine configuration that hold before anything is rendered
policies.py       What the public API refuses beside its definitions: streams, boot images, and reports for another node
"""
