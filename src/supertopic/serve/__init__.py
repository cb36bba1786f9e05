"""A server: JSON over HTTP, a page, batches of requests, and a model that is loaded again when its file changes."""
