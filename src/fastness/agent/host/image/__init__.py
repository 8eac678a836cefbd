"""Images of disks, looked into and filled."""
