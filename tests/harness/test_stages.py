import numpy as np
import pytest
from toy_learner import ToyLearner

from tdpo_baselines.harness import stages
from tdpo_baselines.harness.stages import StagedLearner
from tdpo_baselines.options import registry
from tdpo_baselines.storage.run_folder import RunConfig


def resolve(**changes) -> RunConfig:
    """Return the config of the paper's TDPO on the pendulum with these options, in which __ stands for a point."""
    first, values = stages.split(
        {"variant": "basic"} | {name.replace("__", "."): value for name, value in changes.items()}
    )
    resolved = registry.resolve_values("tdpo", "pendulum-nlr", values)
    options = {name: value for name, value in resolved.items() if not name.startswith("env.")}
    env_options = {name[4:]: value for name, value in resolved.items() if name.startswith("env.")}
    found = stages.resolve("tdpo", "pendulum-nlr", values, first)
    return RunConfig("tdpo", "pendulum-nlr", 0, options, env_options, found)


def test_options_are_split_by_stage():
    values = {"gamma": 1, "stage2.timesteps": "3e6", "stage1.timesteps": 5, "stage1.env.offset": 0, "env.offset": 1}
    first, rest = stages.split(values)
    assert first == [{"timesteps": 5, "env.offset": 0}, {"timesteps": 3_000_000}]
    assert rest == {"gamma": 1, "env.offset": 1}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"stage1.gamma": 0.9}, "stage1.timesteps is missing; pass --set stage1.timesteps=N"),
        ({"stage1.timestep": 5}, "unknown option 'stage1.timestep', did you mean 'stage1.timesteps'"),
        ({"stage1.gamma": 0.9, "stage1.timestps": 5}, "'stage1.timestps', did you mean 'stage1.timesteps'"),
        ({"stage1.timesteps": 9, "stage3.timesteps": 9}, "stage3.timesteps is set but nothing of stage2"),
        ({"stage2.timesteps": 9}, "stage2.timesteps is set but nothing of stage1; number the stages from stage1 on"),
        ({"stage1.timesteps": "soon"}, "stage1.timesteps must be a whole number"),
        ({"stage1.timesteps": -1}, "stage1.timesteps must be at least 0"),
    ],
)
def test_stages_that_cannot_be_understood_are_explained(values, message):
    with pytest.raises(ValueError, match=message):
        stages.split(values)


def test_only_what_differs_is_kept():
    config = resolve(
        gamma=0.9, stage1__timesteps=5, stage1__gamma="0.9", stage1__delta_max="0.3", stage1__env__offset="1"
    )
    assert config.stages == [{"timesteps": 5, "delta_max": 0.3, "env.offset": 1.0}]


def test_unknown_option_is_said_of_its_stage():
    with pytest.raises(ValueError, match="stage2: unknown option 'gama', did you mean 'gamma'"):
        resolve(stage1__timesteps=5, stage2__timesteps=5, stage2__gama=1)


def test_every_stage_has_its_own_options_and_environment():
    config = resolve(held_steps=2, stage1__timesteps=5, stage1__held_steps=3, stage1__env__start_scale=0.5)
    first, own = stages.make(config)
    assert (first.options.held_steps, own.options.held_steps) == (3, 2)
    starts = [stage.environment.params for stage in (first, own)]
    assert starts[0] != starts[1]


@pytest.mark.parametrize("change", [{"hidden_sizes": "8"}, {"use_observation_normalisation": "true"}])
def test_network_of_a_stage_must_be_the_runs(change):
    changes = {f"stage1__{name}": value for name, value in change.items()}
    with pytest.raises(ValueError, match="stage1: observations, actions, hidden_sizes, activation"):
        stages.make(resolve(stage1__timesteps=5, **changes))


def test_invalid_stage_is_named_and_the_runs_own_is_not():
    config = resolve(stage1__timesteps=5, stage2__timesteps=5, stage2__held_steps=999)
    with pytest.raises(ValueError, match="^stage2: held_steps must be at most the horizon"):
        stages.check("tdpo", stages.make(config), num_ranks=1)
    with pytest.raises(ValueError, match="^held_steps must be at most the horizon"):
        stages.check("tdpo", stages.make(resolve(held_steps=999)), num_ranks=1)
    stages.check("tdpo", stages.make(resolve(stage1__timesteps=5)), num_ranks=1)


def test_stages_are_announced_and_a_run_too_short_for_them_is_warned_of():
    config = resolve(stage1__timesteps=5000, stage1__delta_max="0.3", stage2__timesteps=0, stage2__env__offset=1)
    first, second = stages.describe(config, 10**6)
    assert first == "stage 1: 5000 timesteps with delta_max=0.3"
    assert second == "stage 2: 0 timesteps with env.offset=1"
    assert "pass --num_timesteps 10000 or so" in stages.describe(config, 5000)[-1]
    assert stages.describe(resolve(), 1) == []


def learner_of_stages(*durations: int) -> StagedLearner:
    return StagedLearner([(lambda rate=rate: ToyLearner(rate)) for rate in range(len(durations) + 1)], durations)


@pytest.mark.parametrize(("timesteps", "number"), [(0, 1), (9, 1), (10, 2), (29, 2), (30, 3), (10**9, 3)])
def test_stage_of_a_number_of_timesteps(timesteps, number):
    staged = learner_of_stages(10, 20)
    assert staged.seek(timesteps) == (number > 1)
    assert staged.number == number and staged.now.rate == number - 1


def test_stage_without_timesteps_is_left_out():
    assert learner_of_stages(0, 5).number == 2


def test_next_stage_begins_with_the_policy_and_a_new_learner():
    staged = learner_of_stages(10)
    before = staged.now
    before.theta, before.count = np.ones(2), 7
    assert not staged.advance(9) and staged.now is before
    assert staged.advance(10) and staged.now is not before
    assert np.array_equal(staged.now.theta, np.ones(2)) and staged.now.count == 0
