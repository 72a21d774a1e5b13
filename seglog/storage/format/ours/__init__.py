"""ours."""
