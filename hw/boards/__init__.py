"""Boards: the engine behind a cable, with pins, clocks and memory of its own."""
