import numpy as np

from envs.parts.random_numbers import normal_pair


def test_numbers_are_normal_independent_and_a_function_of_seed_and_counter():
    pairs = np.array([normal_pair(0.37, counter) for counter in range(20000)])
    assert np.abs(pairs.mean(axis=0)).max() < 0.03 and np.abs(pairs.std(axis=0) - 1).max() < 0.02
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 0.03 and abs(np.corrcoef(pairs[1:, 0], pairs[:-1, 0])[0, 1]) < 0.03
    assert normal_pair(0.37, 5) == tuple(pairs[5]) and normal_pair(0.37 + 1e-12, 5) != tuple(pairs[5])
