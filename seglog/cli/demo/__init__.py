"""``seglog demo``: the whole engine at work in a temporary folder, each claim counted and checked."""
