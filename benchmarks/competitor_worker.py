"""Runs a competitor once for every line on stdin, and answers with a line of JSON. Runs in .venv-bench."""

import importlib
import json
import os
import sys
import time

import numpy as np


def main() -> None:
    """Arguments: competitor, problem file, chains, steps, threads."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints must not be taken for an answer
    module = importlib.import_module(f"competitor_{sys.argv[1]}")
    with np.load(sys.argv[2]) as file:
        problem = {name: file[name] for name in file.files}
    run = module.prepare(problem, *map(int, sys.argv[3:6]))
    print(json.dumps({"name": module.NAME}), file=answers)
    for _ in sys.stdin:
        start, processor = time.perf_counter(), time.process_time()
        log_z = run()
        answer = {
            "seconds": time.perf_counter() - start,
            "processor_seconds": time.process_time() - processor,
            "log_z": log_z,
        }
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
