"""The paper's statements as verified, as printed, and the simulations that tell the two apart.

Formulas and their checks, which need no network of `networks`, and regressions for layers that have no formula. Models
of their own are trained here, where a statement is about that: the deep linear one, and small CNNs on a layer's output.
What the trained networks of the paper's figures say is `evidence`'s.
"""

from nads_core.theory import deep_linear, lemma2, pooling, regression

__all__ = ["deep_linear", "lemma2", "pooling", "regression"]
