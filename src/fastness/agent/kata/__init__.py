"""The step that makes a node able to run confidential containers."""
