"""The tables and figures of the paper that RAISE is from, computed with the public names of meltpoint alone.

    python -m reproduce table1 --profile quick

Y. Burda, R. Grosse, R. Salakhutdinov: Accurate and conservative estimates of MRF log-likelihood using reverse annealing
(AISTATS 2015). `meltpoint paper` is the same command.
"""
