"""The data source ``seglog`` of Spark: messages of stores as rows, and rows as messages of a store.

The code that walks, gathers and builds Arrow batches uses no Spark; ``data_source`` and ``readers`` connect
it to PySpark's classes, and are imported only if PySpark is installed.
"""
