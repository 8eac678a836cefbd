"""The server's own rules, and the place where rules given from outside are asked.

admit.py       Admission inside the write pipeline
namespaces.py  The life of namespaces: nothing is created where nothing may live
own.py         What the embedded API asks of every write itself, as any Kubernetes does
"""
