"""`python -m medssl` is the `medssl` command."""

from medssl.cli import main

main()
