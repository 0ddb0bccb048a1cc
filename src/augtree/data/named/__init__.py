"""Data sets by name, in the form in which their publishers give them out."""
