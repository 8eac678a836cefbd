"""Rules in CEL (`x-kubernetes-validations`): compile them against a schema, evaluate them on objects.

    engine.py        The CEL library behind one narrow door
    library.py       The functions that Kubernetes adds to CEL, as tables of overloads
    presentation.py  How a value looks to a rule: typed by its schema, with names that CEL can spell
    rules.py         Rules on the values they belong to: compiled once per node, judged value by value
    values.py        Values that CEL does not have and Kubernetes adds: quantities, URLs, addresses, networks, semantic versions

`engine` is the only module that knows the CEL library. It is loaded when the first schema with a rule is compiled, so a server
without rules does not pay for it.
"""
