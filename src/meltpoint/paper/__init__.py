"""The paper's experiments: which numbers it shows, how each is computed, kept and laid out again."""
