"""What several scripts load and split alike; every module is imported by its own name."""
