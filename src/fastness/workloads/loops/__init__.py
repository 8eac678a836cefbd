"""Loops for confidential containers: what nodes can do, and what is installed on them.

* `features.py`: NodeFeatures and NodeFeatureRules become labels, annotations, resources and taints of Nodes.
* `kata/`: a KataConfig becomes packages on nodes and runtime classes.
"""
