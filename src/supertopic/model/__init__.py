"""What a model is: state, responses, terms, priors, posterior. Nothing here samples."""
