"""Spec: what is given. Frozen, checked descriptions of model, node, deployment, workload, prices."""
