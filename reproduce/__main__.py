"""`python -m reproduce …` is `meltpoint paper …`, whose options and exit codes it has."""

import runpy
import sys

sys.argv.insert(1, "paper")
runpy.run_module("meltpoint", run_name="__main__", alter_sys=True)
