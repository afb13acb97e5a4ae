"""From a model and a test set to a report: evaluate(), and the stages of annealing it is made of."""
