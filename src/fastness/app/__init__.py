"""The composition root of `up` and `serve`: who is built with whom, and what each part may do."""
