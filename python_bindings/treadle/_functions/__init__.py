"""Functions of the package itself, `treadle.einsum`, that are written in Python."""
