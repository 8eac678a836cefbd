"""Confidential containers: what pods get, and how it is sealed for them."""
