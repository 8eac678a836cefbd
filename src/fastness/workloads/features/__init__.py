"""Feature rules: from what was found on a node to its labels, annotations, resources and taints.

    found.py        Features: flags, attributes and instances of one node
    rules.py        what a NodeFeatureRule says, read once
    operators.py    one expression against one element; regexps.py brings RE2
    match.py        terms and rules against features, with a trace that tells every step
    templates.py    the small safe part of Go's template language that rules may use
    outputs.py      names, prefixes, namespaces, `@` references, values
    evaluate.py     one rule on one node: Outcome
    book.py         all rules of a cluster, compiled once, asked for every node
    builtin.py      the labels that need no rule
    ownership.py    the difference between a Node and what it should carry

Everything here is a pure function of its arguments. A label says what a host claims about itself: it steers scheduling and
proves nothing.
"""
