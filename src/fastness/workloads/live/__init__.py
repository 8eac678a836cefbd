"""Agent policies, tried in the process for policies."""
