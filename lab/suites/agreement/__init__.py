"""The suite of contradicting sources: a fact on which the sources agree and of which the stored copy is wrong."""
