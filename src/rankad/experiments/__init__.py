"""The paper's tables and figures: data sets, baselines and one module for each.

Needs ``pip install 'rankad[experiments]'``. Nothing outside this package and the command line imports it.
"""
