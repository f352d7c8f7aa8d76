"""What trainings cost against pairs, dimensions, terms and devices."""
