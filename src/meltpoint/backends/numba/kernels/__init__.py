"""The annealing loop fused by Numba: one thread keeps a tile of chains for the whole run.

                                two-sided models        graphs, two states      graphs, factors of any order
the loop                        tile                    bit_graph               table_graph
inputs, draws, weights          blocks, groups (Potts)  bit_draws               table_draws
parameters laid out for it      packing                 graph_packing           table_packing

`lists` chooses the rows that are added up, `chains` has vectors across chains.
"""
