"""Writing to a store from Spark: rows that tasks stage, and one append of all of them by the driver."""
