"""Feature rules: from what was found on a node to its labels, annotations, resources and taints.

    discovered.py  What was found on one node: flags, attributes and instances, by feature
    rules.py       What a NodeFeatureRule says, read once
    operators.py   One expression against one element
    regexps.py     Regular expressions of rules: RE2, found anywhere in the text, in linear time
    match.py       Terms and rules against features, with a trace
    group.py       The terms of one feature, answered together for many rules
    templates/     Templates of rules: Go's text/template with sprig, as Node Feature Discovery runs them
    outputs.py     What a matching rule may put on a node: names, prefixes, namespaces, `@` references and values
    evaluate.py    One rule on one node
    book.py        All rules of a cluster, compiled once and asked for every node
    builtin.py     Labels that need no rule: what discovery found, under names of its own
    ownership.py   The difference between a Node and what it should carry
    errors.py      What can be wrong with rules and features

Everything here is a pure function of its arguments. A label says what a host claims about itself: it steers scheduling and
proves nothing.
"""
