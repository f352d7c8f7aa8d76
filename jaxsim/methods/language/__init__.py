"""Models of language that score sequences of words; they do not encode documents."""
