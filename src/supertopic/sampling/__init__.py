"""The chain: state, responses, shards of documents, engines that run them, Algorithm 1, calibration, inference."""
