from run_scripts import searches
from run_scripts.searches import Search


def test_searches_of_the_scale_smoke_are_tiny():
    search = Search("trpo", "leg-100hz", 1e6, 20)
    small, large = search.arguments("smoke"), search.arguments("short")
    assert "num_iterations=2" in small and small[small.index("--evaluations") + 1] == "2"
    assert "num_timesteps=1000000" in large and large[large.index("--evaluations") + 1] == "20"


def test_every_rival_has_a_search_space():
    for alg in ("trpo", "ppo1", "td3", "ars", "cma"):
        assert (searches.SPACES / f"{alg}_leg_100hz.json").is_file()
