"""From chains to a posterior, and from a posterior to answers."""
