"""The length of GBDL's latents on scans that are not trained on: a metric of validation."""

from ignite.engine import Engine, Events
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from medssl.networks.latent import bounded
from medssl.networks.lrl import LRL

V_SQUARED = "v_squared"


class LatentLength:
    """Adds `v_squared` to the metrics of an evaluator: the mean v.v of all slices whose latents it computes.

    Nothing is added where the network has no v: no LRL, one without latents, or one of independent components.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self._sum, self._slices = 0.0, 0
        self._hook: RemovableHandle | None = None

    def attach(self, evaluator: Engine) -> None:
        if isinstance(self.network, LRL) and self.network.latent_kind != "independent":
            evaluator.add_event_handler(Events.STARTED, self._begin)
            evaluator.add_event_handler(Events.EPOCH_COMPLETED, self._end)

    def _begin(self, evaluator: Engine) -> None:
        self._sum, self._slices = 0.0, 0
        self._remove_hook()  # of an evaluation that failed
        self._hook = self.network.to_v.register_forward_hook(self._add)  # type: ignore[union-attr]

    def _add(self, module: nn.Module, inputs: tuple[Tensor, ...], v: Tensor) -> None:
        lengths = bounded(v.detach(), self.network.v_bound).square().sum(-1)  # type: ignore[arg-type]
        self._sum += float(lengths.sum())
        self._slices += lengths.numel()

    def _end(self, evaluator: Engine) -> None:
        self._remove_hook()
        if self._slices:
            evaluator.state.metrics[V_SQUARED] = self._sum / self._slices

    def _remove_hook(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
