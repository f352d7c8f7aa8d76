"""Methods: one file each, holding an ``objective`` (if any) and a ``fit`` that returns a `jaxsim.optim.Fit`."""
