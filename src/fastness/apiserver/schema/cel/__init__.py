"""Rules in CEL (`x-kubernetes-validations`): compile them against a schema, evaluate them on objects.

    engine.py        the only module that knows the CEL library: environments, programs, RE2
    library.py       the functions Kubernetes adds to the language: texts, lists, sets, regular expressions
    values.py        quantities, URLs, addresses, networks, semantic versions
    presentation.py  how an object looks to a rule: types by schema, escaped names
    rules.py         which rules run on which value, and what a broken one reports

The library is loaded when the first schema with a rule is compiled, so a server without rules does not pay for it.
"""
