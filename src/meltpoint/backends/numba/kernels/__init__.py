"""The annealing loop fused by Numba: one thread keeps a tile of chains for the whole run.

                                bipartite models        graphs, two states      graphs, factors of any order
the loop                        tile                    bit_graph               table_graph
inputs, draws, weights          blocks                  bit_draws               table_draws
parameters laid out for it      packing                 bit_graph               table_packing

`lists` chooses the rows that are added up, `chains` has vectors across chains.
"""
