"""seals."""
