from dataclasses import replace

import linear_quadratic
import pytest

from tdpo_baselines.tdpo import Config, check


def test_recipe_gives_the_papers_coefficients():
    config = Config(variant="basic", reward_scale=5, action_scale=5)
    assert (config.c2, config.delta_max, config.exploration_std) == (720, 5 / 600, 5 / 60)
    assert Config(variant="basic", reward_scale=5, action_scale=1.5).c2 == 8000


def test_schedules_follow_the_timesteps():
    config = Config(variant="basic", 
        delta_max=0.1, delta_decay_steps=100.0, exploration_std=0.5, exploration_decay_steps=300.0,
        max_branch_steps=10, branch_growth_steps=200.0,
    )  # fmt: skip
    assert config.at(0, 1000) == config
    later = config.at(300, 1000)
    assert later.delta_max == pytest.approx(0.025) and later.exploration_std == pytest.approx(0.25)
    assert later.max_branch_steps == 25
    constant = Config(variant="basic", branch_growth_steps=200.0)  # branches go to the horizon anyway
    assert constant.at(10**9, 1000) == constant
    extreme = replace(config, branch_growth_steps=1e-30, delta_decay_steps=1e-30)
    last = extreme.at(10**15, 1000)
    assert last.max_branch_steps == 1000 and last.delta_max > 0


@pytest.mark.parametrize(
    ("options", "num_ranks", "message"),
    [
        ({"num_trajectories": 4}, 8, "pass --num_trajectories 8 or run on 4 ranks"),
        ({"held_steps": 31}, 1, "held_steps must be at most the horizon"),
        ({"variant": "advanced", "directions": "coordinate"}, 1, "directions must be gaussian"),
        ({"held_steps": 8, "max_branch_steps": 7}, 1, "max_branch_steps must be at least held_steps"),
        ({"num_trajectories": 10**6, "num_branches": 10**6}, 1, "GB"),
    ],
)
def test_impossible_work_is_refused(options, num_ranks, message):
    with pytest.raises(ValueError, match=message):
        check(Config(**{"variant": "basic", **options}), linear_quadratic.kernel(), num_ranks)


@pytest.mark.parametrize("options", [{"delta_max": 0.1}, {"branch_times": "all"}, {"held_steps": 3}, {"c2": 0}])
def test_adaptive_variant_refuses_options_of_the_others(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is no option of the adaptive variant.*variant=basic"):
        Config(**options)


def test_adaptive_variant_has_the_discount_of_its_horizon_and_remembers_what_was_given():
    kernel = linear_quadratic.kernel()
    assert Config().fit(kernel).gamma == pytest.approx(1 - 2 / kernel.horizon)
    assert Config(gamma=0.5).fit(kernel).gamma == 0.5 and Config(variant="basic").gamma == 0.99
    assert Config.from_values(Config().to_values()) == Config()
