"""The engines: what every layer shares (spec) and the hardware that is built from it."""
