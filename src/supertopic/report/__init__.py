"""What a posterior says: diagnostics, topics, weights, explanations, figures, pages."""
