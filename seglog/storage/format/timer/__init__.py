"""timer."""
