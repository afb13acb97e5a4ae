"""Training: contrastive divergence, persistent chains, greedy stacks, mean field.

settings, recipe    options: types, limits, defaults; as text and as TOML
examples            what is trained on
phases              the DBM in training: data phase, model phase, gradient
stage               the plan of a stage, its state, an update, the average of the last iterates
loop, train         stages, epochs, Ctrl-C; train_rbm, train_dbn, train_dbm
checkpoint          the sealed file from which a stopped run goes on
monitor             what is reported after each epoch

What training asks of visible units is in `layers/unit.py`.
"""
