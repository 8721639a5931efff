"""Going back to the best parameters after a step too far."""

from typing import Any, NamedTuple

import numpy as np

LEAST_TRUST = 1 / 8


class Safeguard(NamedTuple):
    """The best parameters so far, and how much of the trust region is used since the last drop from them."""

    safe_theta: np.ndarray  # [P]
    safe_payoff: Any = -np.inf
    trust: Any = 1.0

    def after(self, theta: np.ndarray, payoff: float, max_drop: float | None) -> tuple["Safeguard", bool]:
        """The safeguard after parameters were tried, and whether to go back from them.

        Small steps too that drop again and again say that the best was a fluke: it is forgotten.
        """
        trust = min(1.0, 1.1 * self.trust)
        if max_drop is None or payoff > self.safe_payoff:
            return Safeguard(theta, payoff, trust), False
        if self.safe_payoff - payoff <= max_drop * abs(self.safe_payoff):
            return self._replace(trust=trust), False
        if self.trust / 2 >= LEAST_TRUST:
            return self._replace(trust=self.trust / 2), True
        return Safeguard(theta, payoff, self.trust), False
