"""What several scripts load, split and score alike; every module is imported by its own name."""
