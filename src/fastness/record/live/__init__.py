"""The record of a cluster: its tiles, its head, its keys, its readers."""
