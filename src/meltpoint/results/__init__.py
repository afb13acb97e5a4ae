"""The report of an evaluation, and its views: text, figures, plain numbers."""
