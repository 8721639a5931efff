import json
import sys
from importlib import import_module


def test_seed_that_has_its_file_is_not_trained_again(tmp_path, monkeypatch, capsys):
    peers_td3 = import_module("run_scripts.peers_td3")
    trained = []
    monkeypatch.setattr(peers_td3, "train", lambda seed: trained.append(seed) or {"seed": seed, "return": 1.0})
    monkeypatch.setattr(sys, "argv", ["peers_td3.py", "--seeds", "0", "1", "--out", str(tmp_path)])
    peers_td3.main()
    peers_td3.main()
    assert trained == [0, 1]
    assert json.loads((tmp_path / "1.json").read_text()) == {"seed": 1, "return": 1.0}
    assert len(capsys.readouterr().out.splitlines()) == 4
