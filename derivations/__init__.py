"""Derivations: one short machine-checked proof per result, mirroring `capmodel`.

A file states a result, proves it in numbered SymPy steps, and ends in claims: the last line of the
proof, and the function of `capmodel` that implements it. Nothing here runs during an estimate.
"""
