"""Training: contrastive divergence, persistent chains, greedy stacks, mean field."""
