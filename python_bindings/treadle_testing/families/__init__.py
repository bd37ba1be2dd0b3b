"""Sample functions, a module for each family of operators."""
