"""Benches of the store beside its peers: ``python -m perf --help``.

Every figure is taken in a process of its own and checked for what it claims to have done; contestants take
turns within each round, so that other work of the machine meets all of them, and ratios are formed
within a round.

``plan`` says what is measured, ``figures`` what was found and what is wanted, ``sampling`` takes the samples;
``contestants`` holds a module for each that takes part, ``logs`` those that live in Python, ``workloads``
what is done with them, ``java`` the side of Chronicle Queue and Kafka's log (RocketMQ's is the judge of the
interop tests), ``rust`` that of three logs in Rust, and ``stores`` what single benches work on, ``clients``
RocketMQ's clients. ``bench_kernels`` (kernels
over memory, without a store), ``bench_views`` (a queue as numpy), ``bench_spark`` (Spark's jobs, beside the
kernel), ``bench_client`` (CPU time that clients take for a message, ours beside Java's and PyPI's),
``bench_spark_driver`` (their memory by the number of messages),
``bench_many_queues`` (a broker with 10,000 queues), ``bench_pull_latency`` (how soon a held pull has its
message) and ``bench_broker_puts`` (sends beside puts) stand alone.
"""
