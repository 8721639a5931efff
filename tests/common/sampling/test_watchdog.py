"""An environment that hangs ends its process, and one that takes its time does not."""

import subprocess
import sys

import pytest
from programs import ROOT

CODE = """
import time
from tdpo_baselines.common.sampling import watchdog
watchdog.start(0.5)
for number in range(3):
    watchdog.inside = "Slow-v0", number
    time.sleep(0.2)
watchdog.inside = None
time.sleep(0.8)
print("training", flush=True)
watchdog.inside = "Slow-v0", {number}
time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "where"), [(0, "reset"), (17, "step 17 of an episode")])
def test_call_that_does_not_return_ends_the_process_and_is_named(number, where):
    command = [sys.executable, "-c", CODE.format(number=number)]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert process.returncode == 1 and process.stdout == "training\n", process.stderr
    assert process.stderr.startswith(f"[rank 0] error: Slow-v0 has not returned from {where} for 0.5 s")
