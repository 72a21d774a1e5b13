"""Bodies that are JSON: values to text in both of Java's dialects, and back.

Pure. What a body is made of stands in tables of fields, from which reading and writing both follow.

Called by the table of exchanges.
Truth: what official clients and brokers send.
"""
