"""Loops about machines that join."""
