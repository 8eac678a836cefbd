"""How a machine becomes a node: enrol, prove, fetch, join; and how it proves itself again."""
