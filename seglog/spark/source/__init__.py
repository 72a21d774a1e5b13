"""The data source ``seglog`` of Spark: messages of stores as rows, and rows as messages of a store.

What walks, gathers and builds Arrow batches knows no Spark; ``data_source`` and ``readers`` join it to
PySpark's classes, and are imported only where PySpark is.
"""
