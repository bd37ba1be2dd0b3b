"""Parameters that several distributions have in common."""
