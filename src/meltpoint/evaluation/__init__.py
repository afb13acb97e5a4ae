"""From a model and a test set to a report: evaluate(), and the plan of its stages."""
