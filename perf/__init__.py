"""Benches of the store beside its peers: ``python -m perf --help``.

Every figure is taken in a process of its own and checked for what it claims to have done; contestants take
turns within each round, so that whatever else the machine does meets all of them, and ratios are formed
within a round.

``cases`` says what is measured and ``aims`` what is wanted of it; ``contestants`` holds a module for each
that takes part, ``logs`` those that live in Python, ``workloads`` what is done with them, ``java`` Chronicle
Queue's side (RocketMQ's is the judge of the interop tests). ``bench_kernels`` (kernels over memory, without
a store), ``bench_views`` (a queue as numpy), ``bench_spark`` (Spark's jobs, beside the kernel),
``bench_many_queues`` (a broker with 10,000 queues), ``bench_pull_latency`` (how soon a held pull has its
message) and ``bench_broker_puts`` (sends beside puts) stand alone.
"""
