"""Time, background tasks, retries."""
