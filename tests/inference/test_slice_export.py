"""Export of a network of slices; whole exports are tested with the bundle np_semiseg."""

from types import SimpleNamespace

import pytest
from torch import nn

from medssl.core.errors import ConfigError
from medssl.inference import export_slices


def test_a_network_that_does_not_say_how_it_is_built_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"Conv2d: .*expected a SampledNetwork"):
        export_slices(SimpleNamespace(path=tmp_path), tmp_path, SimpleNamespace(network=nn.Conv2d(3, 2, 1)))
    assert not list(tmp_path.iterdir())
