"""Documents: counts become tokens, in memory and on disk."""
