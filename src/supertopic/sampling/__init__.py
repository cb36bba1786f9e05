"""How a posterior is sampled: plans, shards of documents, engines that run them, Algorithm 1, chains."""
