"""``seglog demo``: runs the whole engine in a temporary folder, and checks each claim by counting."""
