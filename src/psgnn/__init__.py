"""psgnn."""
