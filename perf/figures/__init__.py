"""Figures: samples and their spread, what is wanted of them, and the tables and the picture of them."""
