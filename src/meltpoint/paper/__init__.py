"""The paper's experiments: which numbers it shows, how each is computed and kept, and its tables and figures."""
