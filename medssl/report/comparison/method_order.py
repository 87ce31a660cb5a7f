"""In which order methods stand in a table, and which of them learn from unlabelled scans."""

# Tables 3.1 and 3.2 of the thesis both end with GBDL; this order agrees with both, our two controls come before. Then
# those of table 4.1.
KNOWN_METHODS = (
    "self-training",
    "GBDL without Z",
    "Volume-based LRL",
    "IC-LRL",
    "GBDL w/o L_MSE",
    "GBDL w/o L_KL",
    "GBDL w/ shared encoders",
    "GBDL",
    "MixMatch",
    "UDA",
    "FlexMatch",
    "UPS",
    "FixMatch",
    "NP-Match, KL",
    "NP-Match, JS",
    "NP-Match, dual JS",
)
_RANKS = {name.casefold(): rank for rank, name in enumerate(KNOWN_METHODS, start=1)}


def method_rank(method: str) -> tuple[int, str]:
    """A sort key: supervised rows first, then the known methods in the thesis' order, then others by name."""
    name = method.casefold()
    return (0 if is_supervised(method) else _RANKS.get(name, len(_RANKS) + 1), name)


def is_supervised(method: str) -> bool:
    """True for methods that never see an unlabelled scan, whatever the split offers them."""
    return method.casefold().startswith("supervised")
