"""The natural-image models of the thesis (chapters 4 and 5), built on medssl.engine."""
