import math
from types import SimpleNamespace

import pytest

from tdpo_baselines import run
from tdpo_baselines.harness.resolve import resolve
from tdpo_baselines.options.budget import Budget, format_count


def budget(*arguments: str) -> Budget:
    return resolve(run.parse(["--env", "pendulum-nlr", *arguments])).budget


def test_command_line_has_the_defaults():
    assert budget() == Budget() == Budget(5 * 10**7, None, 1000, 2.0, None)


def test_texts_are_parsed():
    given = budget("--num_timesteps", "2e6", "--num_iterations", "7", "--max_walltime", "01:02:03")
    assert (given.num_timesteps, given.num_iterations, given.max_seconds) == (2_000_000, 7, 3723.0)
    assert budget("--checkpoint_minutes", "0.5").checkpoint_minutes == 0.5 and budget().max_seconds == math.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--num_timesteps", "1e400"), "num_timesteps must be a whole number"),
        (("--num_timesteps", "-5"), "num_timesteps must be at least 1"),
        (("--num_iterations", "0"), "num_iterations must be at least 1"),
        (("--checkpoint_every", "0"), "checkpoint_every must be at least 1"),
        (("--checkpoint_minutes", "0"), "checkpoint_minutes must be more than 0, got 0"),
        (("--max_walltime", "1h"), "max_walltime must be HH:MM:SS, got '1h'"),
    ],
)
def test_invalid_values_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        budget(*arguments)


def test_fraction_done_is_that_of_the_limit_that_comes_first():
    half = SimpleNamespace(total_timesteps=50, iteration=1)
    assert Budget(100, None, 1, 1.0, None).fraction_done(half) == 0.5
    assert Budget(100, 4, 1, 1.0, None).fraction_done(half) == 0.5
    assert Budget(1000, 4, 1, 1.0, None).fraction_done(half) == 0.25
    assert Budget(40, 4, 1, 1.0, None).fraction_done(half) == 1.0


def test_numbers_are_shown_as_they_are_typed():
    assert [format_count(n) for n in (90, 35_000_000, 5 * 10**9, 10**18)] == ["90", "3.5e7", "5e9", "1e18"]
