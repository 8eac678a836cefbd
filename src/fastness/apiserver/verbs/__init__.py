"""What each verb does."""
