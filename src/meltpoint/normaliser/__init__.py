"""log_z(): the normaliser of a model from both sides, without a test set."""
