"""The paper's experiments, on the public interface of fastmix: data, trials, report, benchmark.

Run it from the root of the repository: ``python -m reproduction --help``.
"""
