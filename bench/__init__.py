"""Benchmarks, which are ratios measured side by side in one run, and the demonstration."""
