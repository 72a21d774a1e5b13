"""Streams: how far a stream came, how far its next batch goes, and the reader for PySpark."""
