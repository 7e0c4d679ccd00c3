"""What each command of `watersmeet` does, one to a file."""
