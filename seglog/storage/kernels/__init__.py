"""The hot loops over records, in Python; they take buffers, never files."""

KERNELS = "python"
"""Which implementation runs; ``seglog version`` shows it."""
