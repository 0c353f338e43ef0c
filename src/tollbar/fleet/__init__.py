"""Many machines: a study on each node of a cluster, each node's run brought home while it grows.

`namespaces` is a private network of made-up machines on this one.
"""
