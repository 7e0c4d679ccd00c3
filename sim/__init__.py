"""Simulation of the gateware: building, driving, judging."""
