"""Who takes part: a module for each."""
