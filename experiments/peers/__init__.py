"""Your own pairs: jaxsim beside the programs one would use instead."""
