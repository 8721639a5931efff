import json
import re
from importlib import import_module

import pytest
from programs import ROOT

from tdpo_baselines.evaluating.trained import AGENTS, load
from tdpo_baselines.options import registry


@pytest.mark.slow
def test_agent_is_trained_evaluated_and_written_with_its_card(tmp_path, monkeypatch):
    agents = import_module("run_scripts.agents")
    small = agents.Agent(2e4, seed=3, use_best=True)
    monkeypatch.setitem(agents.RECIPES, "cart-pole", small)
    out = tmp_path / "agents"
    assert agents.main(["cart-pole", "--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["cart-pole.json", "cart-pole.npz"]
    card, agent = json.loads((out / "cart-pole.json").read_text()), load(out / "cart-pole.npz")
    assert card["command"] == "python -m tdpo_baselines.run --env cart-pole --num_timesteps 20000 --seed 3"
    assert card["num_timesteps"] >= 2e4 and card["parameters"] == "best" and card["made_with"]["num_ranks"] == 1
    found = agent.evaluate(num_episodes=100, seed=1).summary()["return"]
    assert card["parameters_sha256"] == agent.sha256 and card["evaluation"]["return"] == found


def test_every_task_has_an_agent_or_a_reason_in_the_page_that_lists_them():
    section = (ROOT / "docs/training.md").read_text().partition("### Trained agents")[2].partition("\n### ")[0]
    excused = set(re.findall(r"`([\w-]+)`", section.partition("| task | reason |")[2].partition("\n\n")[0]))
    agents = {path.stem for path in AGENTS.glob("*.npz")}
    assert agents == set(import_module("run_scripts.agents").RECIPES)
    assert agents | excused == set(registry.ENVIRONMENTS) and not agents & excused


def test_unknown_agent_is_refused(capsys):
    with pytest.raises(SystemExit):
        import_module("run_scripts.agents").main(["nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err
