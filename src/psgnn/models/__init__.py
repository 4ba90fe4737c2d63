"""The parts of a model: pickers (which anchors), encoders (what a position is), decoders (what two positions say)."""

from typing import TYPE_CHECKING

from psgnn.doors import door

if TYPE_CHECKING:
    from psgnn.models._anchor_sets import AnchorSet, Measured, RandomAnchorSets
    from psgnn.models._channels import ChannelEncoder
    from psgnn.models._config import DECODERS, ESTIMATORS, ModelConfig
    from psgnn.models._decoders import DistanceDecoder, DotDecoder, SetDecoder
    from psgnn.models._encoders import AnchorEncoder, AnchorLayer, ConvEncoder
    from psgnn.models._models import PositionModel, build_model
    from psgnn.models._pickers import RandomSets, RulePicker, ScorePicker, SequentialPicker
    from psgnn.models._presets import MODELS, PRESETS
    from psgnn.models._subsets import KSubset
    from psgnn.models._view import TensorView, view_of

_MODULE_OF = {
    "ChannelEncoder": "psgnn.models._channels",
    "AnchorSet": "psgnn.models._anchor_sets",
    "Measured": "psgnn.models._anchor_sets",
    "RandomAnchorSets": "psgnn.models._anchor_sets",
    "DECODERS": "psgnn.models._config",
    "ESTIMATORS": "psgnn.models._config",
    "MODELS": "psgnn.models._presets",
    "PRESETS": "psgnn.models._presets",
    "ModelConfig": "psgnn.models._config",
    "DistanceDecoder": "psgnn.models._decoders",
    "DotDecoder": "psgnn.models._decoders",
    "SetDecoder": "psgnn.models._decoders",
    "AnchorEncoder": "psgnn.models._encoders",
    "AnchorLayer": "psgnn.models._encoders",
    "ConvEncoder": "psgnn.models._encoders",
    "PositionModel": "psgnn.models._models",
    "build_model": "psgnn.models._models",
    "RandomSets": "psgnn.models._pickers",
    "RulePicker": "psgnn.models._pickers",
    "ScorePicker": "psgnn.models._pickers",
    "SequentialPicker": "psgnn.models._pickers",
    "KSubset": "psgnn.models._subsets",
    "TensorView": "psgnn.models._view",
    "view_of": "psgnn.models._view",
}

__all__ = [
    "DECODERS",
    "ESTIMATORS",
    "MODELS",
    "PRESETS",
    "AnchorEncoder",
    "AnchorLayer",
    "AnchorSet",
    "ChannelEncoder",
    "ConvEncoder",
    "DistanceDecoder",
    "DotDecoder",
    "KSubset",
    "Measured",
    "ModelConfig",
    "PositionModel",
    "RandomAnchorSets",
    "RandomSets",
    "RulePicker",
    "ScorePicker",
    "SequentialPicker",
    "SetDecoder",
    "TensorView",
    "build_model",
    "view_of",
]

__getattr__, __dir__ = door(__name__, _MODULE_OF)
