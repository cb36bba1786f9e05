"""What is told of a fitted model: facts, and the statistics behind them."""
