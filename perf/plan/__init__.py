"""The plan: what is measured, on what messages, with how much work, and in which units."""
