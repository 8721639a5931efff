import numpy as np
import pytest

from envs.leg.kernels import simple_kernel
from envs.pendulum.long import long_kernel
from tdpo_baselines.common.networks import mlp
from tdpo_baselines.common.sampling.rollouts import PolicyRoller, make_rollouts


class Recorder(PolicyRoller):
    """A roller that only notes what it is asked for."""

    def _roll_out(self, theta, states, num_steps, offsets, save_steps, out):
        self.asked = (num_steps, offsets, save_steps)


def test_record_has_the_documented_shapes_and_begins_with_zeros():
    record = make_rollouts(batch=2, num_recorded=3, sizes=(4, 8, 5), state_size=6, num_saved=7)
    shapes = {name: array.shape for name, array in record._asdict().items()}
    assert shapes == {
        "observations": (2, 3, 4), "actions": (2, 3, 5), "rewards": (2, 3), "discounted_returns": (2,),
        "lengths": (2,), "saved_states": (2, 7, 6), "final_states": (2, 6), "replayed_steps": (2,), "is_terminal": (2,),
        "is_truncated": (2,),
    }  # fmt: skip
    assert not any(array.any() for array in record)


def test_defaults_are_whole_episodes_without_offsets_and_without_saved_states():
    roller = Recorder(long_kernel(), (8,), 0.9)
    out = roller.rollouts(np.zeros(roller.num_parameters), np.zeros((3, 2)))
    num_steps, offsets, save_steps = roller.asked
    assert num_steps.tolist() == [200] * 3 and offsets.shape == (3, 0, 1) and save_steps.shape == (3, 0)
    assert out.rewards.shape == (3, 200)


def test_sizes_are_those_of_the_environment_and_the_network():
    roller = Recorder(long_kernel(), (8, 4), 0.9, mlp.Style("relu"))
    assert roller.layer_sizes == (3, 8, 4, 1) and roller.num_parameters == 4 * 8 + 9 * 4 + 5 * 1
    assert (roller.horizon, roller.start_size, roller.state_size) == (200, 2, 2)
    assert roller.style.hidden == "relu"


@pytest.mark.parametrize(("make", "expected"), [(long_kernel, [True]), (simple_kernel, [False, False])])
def test_action_is_limited_if_the_environment_clips_it(make, expected):
    assert Recorder(make(), (8,), 0.9).is_action_limited.tolist() == expected
