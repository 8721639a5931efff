"""Every twin under a policy that was trained in it: states and actions that random ones do not reach."""

import pytest
from twin_episodes import count_equal_steps

from tdpo_baselines.evaluating.trained import load
from tdpo_baselines.options import registry


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.TWINS)
def test_twenty_episodes_of_a_trained_policy_equal_gymnasiums_to_the_bit(name, program, tmp_path):
    run = str(tmp_path / "run")
    done = program("run", "--env", name, "--num_timesteps", "5e4", "--log_dir", run, "--quiet")
    assert done.returncode == 0, done.stderr
    trained = load(run)
    assert count_equal_steps(name, horizon=300, act=trained.act) > 300
