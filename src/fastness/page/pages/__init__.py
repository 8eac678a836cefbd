"""The views: pure functions from what a user may see to markup.

`layout.py` is what all pages share; the others are named after what they show. None of them reads a cache, a clock or a
request: `app.py` hands in what they need.
"""
