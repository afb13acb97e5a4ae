"""Training: contrastive divergence, persistent chains, greedy stacks, mean field.

settings    options, their defaults, recipes        phases      the DBM in training, data and model phase, gradient
rbm         train_rbm, and greedy stacks of RBMs    optimiser   steps, momentum, the average of the last iterates
deep        train_dbn, train_dbm                    checkpoint  the sealed file from which a stopped run goes on
loop        examples, stages, epochs, Ctrl-C        monitor     what is reported after each epoch
"""
