"""Fingerprints of arrays, from where models have them too."""

from meltpoint.fingerprint import Arrays, fingerprint

__all__ = ["Arrays", "fingerprint"]
