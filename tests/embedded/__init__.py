"""The embedded API as tests use it."""
