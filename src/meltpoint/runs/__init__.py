"""The one store: chunks of finished work on disk, sealed and locked. Evaluations, training and paper cells use it."""
