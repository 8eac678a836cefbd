"""The doors that release something."""
