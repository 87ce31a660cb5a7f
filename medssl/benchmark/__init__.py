"""Which method to take for one's own data: equal compute for every row, intervals, and one sentence at the end."""

from medssl.benchmark.plan import BenchmarkPlan, methods_of
from medssl.benchmark.verdict import Benchmark, benchmark_of, sentence

__all__ = ["Benchmark", "BenchmarkPlan", "benchmark_of", "methods_of", "sentence"]
