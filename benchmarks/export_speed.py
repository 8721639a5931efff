"""Time per call of an exported C controller in a 4 kHz loop, beside the loop's 250 microseconds.

The loop runs at its rate for some seconds, with real-time priority where the system permits it (`chrt`), and every call
is timed on its own by the monotonic clock. Needs a C compiler (`cc`).
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tdpo_baselines.common.networks import mlp
from tdpo_baselines.exporting import c_code
from tdpo_baselines.exporting.controller import Controller, SafetySteps
from tdpo_baselines.exporting.policy import Policy

LOOP_US = 250.0
NUM_CALLS = 20_000  # 5 s
NETWORKS = {
    "64-64 tanh": ((4, 64, 64, 2), mlp.Style(centre=(0.0, 0.0), scale=(10.0, 10.0), has_linear_part=True)),
    "256-256 relu": ((4, 256, 256, 2), mlp.Style("relu", True, (0.0, 0.0), (10.0, 10.0))),
}
FLAGS = (("-O2",), ("-O2", "-march=native"), ("-O2", "-DPOLICY_NO_FMA"))
TIMER = """#define _POSIX_C_SOURCE 200112L
#include "policy.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#define NUM_CALLS %d
static double times[NUM_CALLS];
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}
static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(void)
{
    policy_real observation[POLICY_NUM_OBSERVATIONS] = {0}, action[POLICY_NUM_ACTIONS] = {0}, sum = 0;
    policy_state state;
    struct timespec next;
    int call, j;
    mlockall(MCL_CURRENT | MCL_FUTURE); /* as a control loop does, where it may */
    policy_reset(&state, action);
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (call = 0; call < NUM_CALLS; call++) {
        next.tv_nsec += 250000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        for (j = 0; j < POLICY_NUM_OBSERVATIONS; j++)
            observation[j] = (policy_real)(rand() / (0.1 * RAND_MAX) - 5.0);
        times[call] = now();
        policy_step(&state, observation, action);
        times[call] = now() - times[call];
        sum += action[0];
    }
    qsort(times, NUM_CALLS, sizeof times[0], compare);
    printf("%%g %%g %%g", times[NUM_CALLS / 2], times[NUM_CALLS - 1 - NUM_CALLS / 1000], times[NUM_CALLS - 1]);
    return sum != sum;
}
"""


def real_time() -> list[str]:
    """Return the words before a command that give it a real-time priority; none if that is not permitted."""
    words = ["chrt", "--fifo", "50"]
    is_permitted = shutil.which("chrt") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if is_permitted else []


def make_controller(network: str, precision: str) -> Controller:
    """Return a controller of random weights with all safety options."""
    sizes, style = NETWORKS[network]
    rng, limit = np.random.default_rng(0), np.full(2, 8.0)
    theta = mlp.init_parameters(sizes, rng, output_gain=1.0, style=style)
    policy = Policy(sizes, style, theta, -limit, limit)
    steps, observations = SafetySteps(np.full(2, 0.25), 0.5), rng.standard_normal((100, 4))
    return Controller(policy, steps, observations, "policy", precision, f"policy of a benchmark, {network}", "{}", 0)


def measure(network: str, precision: str, flags: tuple[str, ...]) -> str:
    """Return median, 99.9 % quantile and worst time of a call as a row of a table."""
    with tempfile.TemporaryDirectory() as folder:
        c_code.write(Path(folder), make_controller(network, precision))
        source, program = Path(folder) / "timer.c", Path(folder) / "timer"
        source.write_text(TIMER % NUM_CALLS)
        command = ["cc", "-std=c99", "-ffp-contract=off", *flags, str(source), "-o", str(program), "-lm"]
        subprocess.run(command, check=True)
        done = subprocess.run([*real_time(), str(program)], check=True, capture_output=True, text=True)
    median, most, worst = map(float, done.stdout.split())
    share = f"{100 * worst / LOOP_US:.0f} %"
    return f"| {network} | {precision} | `{' '.join(flags)}` | {median:.1f} | {most:.1f} | {worst:.1f} | {share} |"


if __name__ == "__main__":
    priority, load = "with" if real_time() else "without", os.getloadavg()[0]
    print(f"{NUM_CALLS} steps at 4 kHz, {priority} real-time priority; load {load:.1f} on {os.cpu_count()} cores\n")
    print("| network | precision | compiler flags | median (us) | 99.9 % (us) | worst (us) | worst of 250 us |")
    print("|---|---|---|---|---|---|---|")
    for network in NETWORKS:
        for precision in ("double", "float"):
            for flags in FLAGS:
                print(measure(network, precision, flags), flush=True)
