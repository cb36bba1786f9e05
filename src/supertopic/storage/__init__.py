"""Files of data: a container, and model files."""
