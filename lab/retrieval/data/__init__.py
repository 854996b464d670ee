"""Test sets from files and from a seed: the loader, the importers, the generator, the keyword rule, the schemas."""
