"""Whether the solver z3 can be used, which nothing here calls: never."""

HAS_Z3 = False
