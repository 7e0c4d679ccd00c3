"""The engines behind host.backend.Backend, and how one is chosen by name."""
