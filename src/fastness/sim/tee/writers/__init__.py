"""The bytes that software TEEs write."""
