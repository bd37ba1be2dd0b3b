"""How accurate functions are: the table of bounds, references of higher precision, the measure."""
