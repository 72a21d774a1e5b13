"""small_files."""
