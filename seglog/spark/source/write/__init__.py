"""Writing to a store from Spark: tasks stage rows, and the driver appends all of them at once."""
