"""Several evaluations side by side: of models, of the checkpoints of a training run, of numbers of steps."""
