"""What each part of the library takes, beside its limit and the programs one would use instead."""
