import dataclasses

import numpy as np
import pytest

from tdpo_baselines.common.parallel.comm import Comm
from tdpo_baselines.evaluating.robustness import Range, choose_values, parse_ranges, sweep
from tdpo_baselines.evaluating.trained import load


@pytest.fixture(scope="module")
def agent():
    return load("pretrained:pendulum-nlr")


def test_ranges_are_parsed():
    assert parse_ranges("delay_steps=0:8, env.offset=-0.3:7e-1:5") == [
        Range("delay_steps", 0, 8, None),
        Range("offset", -0.3, 0.7, 5),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delay_steps", "takes NAME=LOW:HIGH"),
        ("delay_steps=1", "takes NAME=LOW:HIGH"),
        ("=0:1", "takes NAME=LOW:HIGH"),
        ("a=0:1,b=0:1,c=0:1", "one or two of them"),
        ("a=0:1,env.a=0:2", "each name once"),
        ("a=0:x", "a must be a finite number, got 'x'"),
        ("a=2:1", "a must have LOW below HIGH"),
        ("a=0:1:1", "2 to 100 values"),
        ("a=0:1:1e9", "2 to 100 values"),
    ],
)
def test_invalid_ranges_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_ranges(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("delay_steps=0:3", (0, 1, 2, 3)),
        ("delay_steps=0:8:3", (0, 4, 8)),
        ("delay_steps=0:2:9", (0, 1, 2)),
        ("start_scale=0:1", (0, 0.25, 0.5, 0.75, 1)),
        ("amplitude=0.1:0.3:3", (0.1, 0.2, 0.3)),  # not set in training: the variant's
    ],
)
def test_whole_options_have_whole_values(agent, text, values):
    assert choose_values(*parse_ranges(text), agent) == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mass=0:1", "pendulum-nlr has no option 'mass'; its numeric options: variant, start_scale"),
        ("delay_step=0:1", "did you mean 'delay_steps'"),
        ("observation=0:1", "observation of pendulum-nlr is 'angle', not a number"),
    ],
)
def test_options_that_are_not_numeric_are_refused(agent, text, message):
    with pytest.raises(ValueError, match=message):
        choose_values(*parse_ranges(text), agent)


def test_every_combination_is_evaluated_with_its_options(agent):
    found = sweep(agent, parse_ranges("delay_steps=0:1,start_scale=0.1:1:2"), Comm(), num_episodes=2)
    assert found.names == ("delay_steps", "start_scale") and found.own == (0, 0.1)
    assert found.values == ((0, 1), (0.1, 1.0)) and found.returns.shape == (2, 2)
    assert found.returns[0, 0] == agent.evaluate(num_episodes=2).results["return"].mean()
    assert found.returns.argmax() == 0 and len(np.unique(found.returns)) == 4


def test_quantities_of_a_model_are_swept_and_their_ranges_in_training_told():
    leg = load("pretrained:leg")
    leg = dataclasses.replace(leg, env_changes={"motor": "0.9:1.1", "delay_steps": "0:2"})
    ranges = parse_ranges("delay_steps=0:2,mass=0.8:1.2:3")
    assert choose_values(ranges[0], leg) == (0, 1, 2) and choose_values(ranges[1], leg) == (0.8, 1.0, 1.2)
    found = sweep(leg, parse_ranges("motor=0.8:1.2:2,delay_steps=0:2:2"), Comm(), num_episodes=1)
    assert found.own == ((0.9, 1.1), (0, 2)) and len(np.unique(found.returns)) == 4
