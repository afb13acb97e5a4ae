"""Models and arrays on disk: never unpickled, never half-written."""
