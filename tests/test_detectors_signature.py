"""What detectors say of parameters and attributes that they do not have."""

import copy
import inspect
import pickle
import re

import pytest
from sklearn.exceptions import NotFittedError

from rankad import KLPE, EpsilonLPE, RankAD, TableDetector
from rankad.detectors.signature import ATTRIBUTES

DETECTORS = [RankAD, KLPE, EpsilonLPE, TableDetector]


@pytest.mark.parametrize("kind", DETECTORS)
@pytest.mark.parametrize("name", ["contamination", "nu"])
def test_the_false_alarm_rate_is_alpha(kind, name):
    with pytest.raises(TypeError) as caught:
        kind(**{name: 0.1})
    said = str(caught.value)
    assert said.startswith(f"{kind.__name__} has no parameter {name!r}: alpha is the false-alarm rate")
    assert f"{kind.__name__}(alpha=0.01)" in said
    # What it says to do can be done.
    assert kind(alpha=0.01).alpha == 0.01
    assert RankAD(trim=0.02).trim == 0.02


@pytest.mark.parametrize("name", sorted(set(RankAD().get_params()) - {"alpha"}))
def test_tables_tell_where_parameters_of_the_detector_inside_go(name):
    with pytest.raises(TypeError, match=rf"as in TableDetector\(RankAD\({name}=\.\.\.\)\)\."):
        TableDetector(**{name: 1})


def test_a_misspelt_parameter_gets_the_nearest_one_there_is():
    with pytest.raises(TypeError, match=r"'n_neighbours'\. Did you mean 'n_neighbors'\? It has alpha, "):
        KLPE(n_neighbours=3)
    with pytest.raises(TypeError, match=r"^KLPE has no parameter 'zzz'\. It has alpha, "):
        KLPE(zzz=3)


@pytest.mark.parametrize("kind", DETECTORS)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_other_packages_are_told_by_what_there_is(kind, name):
    detector = kind()
    with pytest.raises(AttributeError, match=rf"^{kind.__name__} has no {name}: ") as caught:
        getattr(detector, name)
    assert not hasattr(detector, name)
    named = re.findall(r"\b(\w+_|\w+(?=\())(?!\w)", str(caught.value).split(": ", 1)[1])
    assert all(hasattr(kind, each) for each in named)


@pytest.mark.parametrize("kind", DETECTORS)
def test_what_is_not_there_yet_and_what_never_is_are_told_apart(kind):
    with pytest.raises(NotFittedError):
        _ = kind().offset_
    with pytest.raises(AttributeError, match="has no attribute 'lables_'") as caught:
        _ = kind().lables_
    assert not isinstance(caught.value, NotFittedError)
    assert copy.deepcopy(pickle.loads(pickle.dumps(kind()))).get_params().keys() == kind().get_params().keys()


@pytest.mark.parametrize("kind", DETECTORS)
def test_signatures_are_those_that_were_written(kind):
    names = list(inspect.signature(kind).parameters)
    assert names[0] == ("detector" if kind is TableDetector else "alpha")
    assert set(names) == set(kind().get_params(deep=False))
    with pytest.raises(TypeError, match="positional"):
        kind(0.1, 3)


def test_a_class_derived_from_a_detector_may_take_more():
    class Named(KLPE):
        def __init__(self, label="", alpha=0.05):
            super().__init__(alpha)
            self.label = label

    class Open(KLPE):
        def __init__(self, **more):
            super().__init__()
            self.more = more

    assert Named(label="x").label == "x"
    assert Open(contamination=0.1).more == {"contamination": 0.1}
    with pytest.raises(TypeError, match="Named has no parameter 'contamination'"):
        Named(contamination=0.1)
