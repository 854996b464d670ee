"""One report model, then one writer a file."""
