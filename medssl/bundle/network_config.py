"""How a trained network is built again: its class and arguments, for the bundle that a run exports."""

from typing import Any

from torch import nn

from medssl.bundle.command import current_command
from medssl.core.errors import ConfigError
from medssl.networks.network_config import network_config_of
from medssl.security.opening import parser_of


def network_config(network: nn.Module, **known: Any) -> dict[str, Any] | None:
    """The `network_def` that builds `network`, in plain values; None where it names its own `arguments`.

    It is read from the command's configuration. known: objects that its expressions may refer to, by their ids.
    Raises ConfigError where neither tells the arguments.
    """
    if hasattr(network, "arguments"):
        return None
    command = current_command()
    if command is None or "network_def" not in command.config:
        raise ConfigError(
            f"{type(network).__name__}: its arguments are not known, so that it cannot be exported. Start the training "
            "by the command line or by medssl.bundle.run_bundle, or give the network a dict `arguments`."
        )
    parser = parser_of({**command.config, **known})
    component = parser.get_parsed_content("network_def", instantiate=False)
    return network_config_of(component.get_config())
