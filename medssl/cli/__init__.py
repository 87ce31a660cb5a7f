"""The `medssl` command: a module a topic, each parses and calls the layers below."""

from medssl.cli import (
    benchmark,
    bundles,
    data,
    explain,
    predict,
    report,
    reproduce,
    review,
    serve,
    simulate,
    training,
    trials,
)
from medssl.cli.app import app, main

__all__ = [
    "app",
    "benchmark",
    "bundles",
    "data",
    "explain",
    "main",
    "predict",
    "report",
    "reproduce",
    "review",
    "serve",
    "simulate",
    "training",
    "trials",
]
