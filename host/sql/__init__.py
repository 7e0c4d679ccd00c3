"""The condition language: SQL text -> typed expressions, and their kernels over columns."""
