"""Files that are believed only when every byte is right: their container, and checkpoints."""
