"""Training: contrastive divergence, persistent chains, greedy stacks, mean field.

settings    options: types, limits, defaults        loop        stages, epochs, Ctrl-C
recipe      options as text and as TOML             phases      the DBM in training, data and model phase, gradient
examples    what is trained on                      optimiser   steps, momentum, the average of the last iterates
train       train_rbm, train_dbn, train_dbm         checkpoint  the sealed file from which a stopped run goes on
                                                    monitor     what is reported after each epoch

What training asks of visible units is in `layers/unit.py`.
"""
