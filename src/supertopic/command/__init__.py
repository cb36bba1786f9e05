"""The command `supertopic`: what it reads, what it shows."""
